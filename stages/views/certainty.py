"""How far the verdict can be trusted, in one line: the interval, the repetitions behind it, and the runner-up."""

from __future__ import annotations

from stages.views import words
from stages.views.document import Study, baseline, dig, headline_choice, part
from stages.views.figures.waterfall import describe
from stages.views.headline import chosen
from stages.views.tables.several import disagreeing
from stages.views.tables.table import versus


def certainty(study: Study) -> str:
    """For the recommended mode of the first screen; without one only what the machine did, where it shifted its speed."""
    name = chosen(study)
    if not name:
        return shifted(study)
    parts = [_steps(study, name), shifted(study), _starts(study, name), _runner_up(study)]
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
    steps = [words.count(sequence.get(key)) for key in ("num_steps", "steps_in_trace")]
    timed = "" if words.ABSENT in steps or steps[0] == steps[1] else f" ({' of '.join(steps)} steps)"
    return f"Step sequence{timed}, {baseline(study)} / {name}: {compared}{repeated}{others}{_doubt(study, name)}."


def shifted(study: Study) -> str:
    """That the machine shifted between speeds, by the largest change in any factorial; empty where none is over 30 %."""
    found = [shift for answer in part(study, "attribution").values() if (shift := part(answer, "speed_shift"))]
    if not found:
        return ""
    worst = max(found, key=lambda shift: shift["most_us"] / shift["least_us"])
    times = " to ".join(words.microseconds(worst[end]) for end in ("least_us", "most_us"))
    where = f"{worst['mode']} at {describe(str(worst['point']).removeprefix('decode/'))}"
    count, of = (sum(shift[key] for shift in found) for key in ("num_shifted", "of"))
    said = f"The machine shifted its speed: equal work differs by over 30 % in {count} of {of} timings, most {where}, {times}."
    return words.clean(said)


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
        return "One cold start each: no interval on ready times."
    return f"Ready times are medians of {words.count(starts)} cold starts."


def _runner_up(study: Study) -> str:
    choice = headline_choice(study)
    if choice is None or not choice[2].get("runner_up"):
        return ""
    ours, theirs = (words.number(choice[2].get(key)) for key in ("completions", "runner_up_completions"))
    apart = abs(ours - theirs) / ours if ours and theirs is not None else 0.0
    margin = f", {words.percent(apart)} apart in completions" if apart >= 0.01 else ""
    decided = str(choice[2].get("reason")).partition(":")[0].replace("completions within 1 %, ", "")
    return f"Runner-up: {choice[2]['runner_up']}{margin} ({decided})."
