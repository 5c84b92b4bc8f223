"""How far the verdict can be trusted, in one line: the interval, the repetitions behind it, and the runner-up."""

from __future__ import annotations

from stages.views import words
from stages.views.document import Study, baseline, dig, headline_choice, part
from stages.views.headline import chosen
from stages.views.tables.several import disagreeing
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
    factorial = str(dig(sequence, "vs_baseline", "factorial"))
    sets = words.number(dig(study, "attribution", factorial, "num_sets"))
    repeated = "" if sets is None else f", from {words.count(sets)} {'set' if sets == 1 else 'sets'} of processes ({factorial})"
    others = "".join(f"; {other} says {value}: they disagree" for other, value in disagreeing(study, name))
    return f"Whole step sequence, {baseline(study)} / {name}: {compared}{repeated}{others}{_doubt(study, name)}."


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
    return f"Runner-up: {choice[2]['runner_up']}{margin} ({str(choice[2].get('reason')).partition(':')[0]})."
