"""How far the verdict can be trusted, in one line: the interval, the repetitions behind it, and the runner-up."""

from __future__ import annotations

from stages.analysis.wording import UNDECIDED
from stages.views import words
from stages.views.document import Study, baseline, dig, headline_choice, part, sort_numeric
from stages.views.headline import chosen
from stages.views.tables.table import versus


def certainty(study: Study) -> str:
    """For the recommended mode of the first screen; empty without one."""
    name = chosen(study)
    if not name:
        return ""
    parts = [_steps(study, name), _starts(study, name), _runner_up(study)]
    return words.clean(" ".join(text for text in parts if text))


def _steps(study: Study, name: str) -> str:
    sequence = part(study, "modes", name, "steady_state", "sequence")
    compared = versus(sequence)
    if compared == words.ABSENT:
        return ""
    sets = words.number(dig(study, "attribution", str(dig(sequence, "vs_baseline", "factorial")), "num_sets"))
    repeated = "" if sets is None else f", from {words.count(sets)} {'set' if sets == 1 else 'sets'} of processes"
    return f"Whole step sequence, {baseline(study)} / {name}: {compared}{repeated}{_doubt(study, name)}."


def _doubt(study: Study, name: str) -> str:
    steps = part(study, "modes", name, "steady_state")
    found = [dig(times, "vs_baseline", "verdict") for phase in ("decode", "prefill") for times in part(steps, phase).values()]
    count = found.count("undecided")
    return f"; for {count} of {len(found)} step shapes alone the interval leaves it undecided" if count else ""


def _starts(study: Study, name: str) -> str:
    starts = words.number(dig(study, "modes", name, "startup", "cold", "n"))
    if starts is None:
        return ""
    if starts == 1:
        return "One cold start each: ready times and break-even have no interval."
    return f"Ready times are medians of {words.count(starts)} cold starts."


def _runner_up(study: Study) -> str:
    choice = headline_choice(study)
    if choice is None or not choice[2].get("runner_up"):
        return ""
    ours, theirs = (words.number(choice[2].get(key)) for key in ("completions", "runner_up_completions"))
    apart = abs(ours - theirs) / ours if ours and theirs is not None else 0.0
    margin = f", {words.percent(apart)} apart in completions" if apart >= 0.01 else ""
    return f"Runner-up: {choice[2]['runner_up']}{margin} ({choice[2].get('reason')})."


def switch(study: Study) -> str:
    """Why a shorter life asks for another mode, and between which of the tested lifetimes the choice changes; empty if none."""
    name, choice = chosen(study), headline_choice(study)
    if not name or choice is None:
        return ""
    table = part(study, "verdict", "choices")
    lifetimes = [key for key in sort_numeric(table) if choice[1] in table[key]]
    picked = [str(table[key][choice[1]].get("mode")) for key in lifetimes]
    changes = [index for index in range(1, len(picked)) if picked[index] == name and picked[index - 1] != name]
    if not changes:
        return ""
    at = changes[-1]
    other, ready = picked[at - 1], [_ready(study, mode) for mode in (picked[at - 1], name)]
    shorter, longer = (words.chosen_seconds(float(lifetimes[index])) for index in (at - 1, at))
    between = f"Between {shorter} and {longer} no lifetime was computed."
    if other == UNDECIDED:
        return words.clean(f"For a worker that lives {shorter} the measurements do not decide. {between}")
    faster = f", which is ready {ready[0]} after a cold start ({name}: {ready[1]})" if all(ready) else ""
    return words.clean(f"A worker that lives {shorter} or less should run {other}{faster}. {between}")


def _ready(study: Study, mode: str) -> str:
    value = words.number(dig(study, "modes", mode, "startup", "cold", "ready_s"))
    return "" if value is None else words.seconds(value)
