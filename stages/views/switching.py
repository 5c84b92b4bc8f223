"""Shorter lives, in a sentence or two: until when the other mode is ahead, where nothing is decided, and what turns it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import isclose
from typing import Any

from stages.analysis.wording import UNDECIDED, seconds
from stages.views import words
from stages.views.document import Study, arrival_rates, baseline, dig, headline_choice, part, sort_numeric
from stages.views.headline import chosen
from stages.views.roles import spans, tested

ALIKE_SHARE = 0.05


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
    parts = [_before(study, name), _between(study, choice[1]), _from(study, name), _at_other_rates(study, choice[1])]
    return words.clean(" ".join(text for text in parts if text))


def _at_other_rates(study: Study, rate: str) -> str:
    """The choices at the other arrival rates of the study: the same ones (lifetimes within 5 %), or which, from cold caches."""
    said, along = [], spans(study, "cold")
    for other in (key for key in arrival_rates(study) if key != rate):
        cold = spans(study, "cold", other)
        if all(_alike(spans(study, cache), spans(study, cache, other)) for cache in ("cold", "warm")):
            said.append(f"At {words.rate(other)}: the same{_ahead(study, along[-1]['mode'], other)}.")
        elif cold:
            listed = [f"{span['mode']}" + (f" from {seconds(span['from_s'])}" if index else "") for index, span in enumerate(cold)]
            said.append(f"At {words.rate(other)}, cold: {', '.join(listed)}.")
    return " ".join(said)


def _ahead(study: Study, name: str, rate: str) -> str:
    """Where the recommended mode is ahead of the baseline in completions at another rate, and is not at the verdict's."""
    found = dig(study, "modes", name, "lifetime", "break_even", rate, "cold")
    if not _never_ahead(study, name) or dig(found, "answer") != "at":
        return ""
    return f", there ahead of {baseline(study)} from {seconds(found['lifetime_s'])} cold on"


def _alike(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> bool:
    if [span["mode"] for span in one] != [span["mode"] for span in other]:
        return False
    return all(isclose(span["from_s"], also["from_s"], rel_tol=ALIKE_SHARE) for span, also in zip(one, other, strict=True))


def _before(study: Study, name: str) -> str:
    """The modes of shorter lives, the shortest first."""
    others = dict.fromkeys(str(span["mode"]) for span in spans(study, "cold")[:-1])
    told = [_until(study, other) for other in others if other not in (UNDECIDED, name)]
    return f"{', then '.join(told)}." if told else ""


def _until(study: Study, other: str) -> str:
    """Where the other mode's span ends, by cache state."""
    ends = []
    for cache in ("cold", "warm"):
        along = spans(study, cache)
        last = max((index for index, span in enumerate(along) if span["mode"] == other), default=None)
        if last is not None and last + 1 < len(along):
            ends.append(f"{seconds(along[last + 1]['from_s'])} {cache}")
    return f"{other} up to {' / '.join(ends)}"


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
    equal = equal.partition(" (")[0].replace("completions within 1 %", "its start costs under 1 % of the completions")
    return f"From {since} cold on {name}: {equal}, then the lower {tail} TPOT decides.{_never_ahead(study, name)}"


def _never_ahead(study: Study, name: str) -> str:
    """Why a mode that is recommended has no break-even, where it has none."""
    choice = headline_choice(study)
    found = dig(study, "modes", name, "lifetime", "break_even", choice[1] if choice else "", "cold", "answer")
    return f" It is never ahead of {baseline(study)} in completions." if found == "never" else ""


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
