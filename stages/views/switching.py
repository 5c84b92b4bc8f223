"""Shorter lives, in a sentence or two: until when the other mode is ahead, where nothing is decided, and what turns it."""

from __future__ import annotations

from itertools import pairwise

from stages.analysis.wording import UNDECIDED, seconds
from stages.views import words
from stages.views.document import Study, baseline, dig, headline_choice, part, sort_numeric
from stages.views.headline import chosen
from stages.views.roles import shorter_mode, spans, tested


def switch(study: Study) -> str:
    """For the recommended mode of the first screen; empty where one mode is best at every lifetime."""
    name, choice = chosen(study), headline_choice(study)
    if not name or choice is None:
        return ""
    along = spans(study, "cold")
    if not along:
        return words.clean(_tested(study, name, choice[1]))
    if len(along) == 1 or along[-1]["mode"] != name:
        return ""
    parts = [_until(study, shorter_mode(study)), _between(study, choice[1]), _from(study, name)]
    return words.clean(" ".join(text for text in parts if text))


def _until(study: Study, other: str) -> str:
    """Where the other mode's span ends, by cache state."""
    ends = []
    for cache in ("cold", "warm"):
        along = spans(study, cache)
        last = max((index for index, span in enumerate(along) if span["mode"] == other), default=None)
        if last is not None and last + 1 < len(along):
            ends.append(f"{seconds(along[last + 1]['from_s'])} {cache}")
    return f"{other} up to {' / '.join(ends)}." if ends else ""


def _between(study: Study, rate: str) -> str:
    """Why nothing is decided just below the recommended mode's span; empty where something is."""
    cold = spans(study, "cold")
    if cold[-2]["mode"] != UNDECIDED:
        return ""
    table, (low, high) = part(study, "verdict", "choices"), (float(span["from_s"]) for span in cold[-2:])
    inside = [dig(table, lifetime, rate, "reason") for lifetime in sort_numeric(table) if low <= float(lifetime) < high]
    why = next((str(reason) for reason in inside if reason), "the measurements do not decide")
    return f"Then undecided: {why}."


def _from(study: Study, name: str) -> str:
    """What the recommended mode's span begins with: more completions, or equal ones and a better latency."""
    choice, since = headline_choice(study), seconds(spans(study, "cold")[-1]["from_s"])
    reason = str(choice[2].get("reason") if choice else "")
    equal, decides, _ = reason.partition(" TPOT decides")
    if not decides:
        return f"From {since} cold on {name} completes more."
    equal, _, tail = equal.rpartition(", ")
    return f"From {since} cold on {name}: {equal.partition(' (')[0]}, and its {tail} TPOT is lower.{_never_ahead(study, name)}"


def _never_ahead(study: Study, name: str) -> str:
    """Why a mode that is recommended has no break-even, where it has none."""
    choice = headline_choice(study)
    found = dig(study, "modes", name, "lifetime", "break_even", choice[1] if choice else "", "cold", "answer")
    return f" In completions it never stays ahead of {baseline(study)}: break-even “never”." if found == "never" else ""


def _tested(study: Study, name: str, rate: str) -> str:
    """From the lifetimes of params.yaml alone."""
    changes = [pair for pair in pairwise(tested(study, rate)) if pair[0][1] != name and pair[1][1] == name]
    if not changes:
        return ""
    (before, other), (after, _) = changes[-1]
    shorter, longer = (words.chosen_seconds(float(lifetime)) for lifetime in (before, after))
    between = f"Between {shorter} and {longer} no lifetime was computed."
    if other == UNDECIDED:
        return f"For a worker that lives {shorter} the measurements do not decide. {between}"
    return f"A worker that lives {shorter} or less should run {other}. {between}"
