"""The verdict in sentences, each with the numbers it rests on."""

from __future__ import annotations

from collections.abc import Mapping

from stages.analysis import services
from stages.analysis.reading import StudyRecords
from stages.core.records.answer import Choice, ModeAnswer
from stages.core.records.lifetime import BreakEven

Table = Mapping[str, Mapping[str, Choice]]

UNDECIDED = "undecided"


def at_rate(rate: str) -> str:
    """A rate key in words."""
    words = {services.SATURATION: "at saturation", "recorded": "at the recorded rate"}
    return words.get(rate) or f"at {rate} requests/s"


def headline_mode(table: Table, records: StudyRecords) -> str:
    """The choice for the longest lifetime at the first arrival rate: what a lasting service should run."""
    lasting = table.get(f"{max(records.params.lifetimes_s):g}", {})
    rates = [*map(services.rate_key, records.params.arrival_rates), services.SATURATION]
    return next((lasting[rate].mode for rate in rates if rate in lasting), UNDECIDED)


def sentence(records: StudyRecords, answers: Mapping[str, ModeAnswer], table: Table, headline: str) -> str:
    """The verdict in one sentence."""
    if not table:
        return f"Undecided: no mode, {records.baseline} included, has both a start and a load record to compare."
    longest = max(table, key=float)
    lasting, lived = table[longest], f"for workers that live {seconds(float(longest))}"
    first = next(iter(lasting))
    if headline == UNDECIDED:
        start = f"Undecided {at_rate(first)} {lived}: {lasting[first].reason}"
    elif headline == records.baseline:
        start = f"Run {headline} {at_rate(first)}: no other mode that may be recommended is ahead {lived}"
    else:
        start = _switch(records, answers[headline], table, headline, first)
    others = [f"{at_rate(rate)} {choice.mode}" for rate, choice in lasting.items() if choice.mode not in (headline, UNDECIDED)]
    return start + "".join(f"; {other}" for other in others) + "."


def _switch(records: StudyRecords, found: ModeAnswer, table: Table, mode: str, rate: str) -> str:
    break_even = found.lifetime.break_even.get(rate, {}) if found.lifetime else {}
    crossings = {cache: _crossing(entry, cache) for cache, entry in break_even.items() if entry.lifetime_s is not None}
    steps = _ladder(table, rate)
    if crossings and [name for name, _ in steps] in ([mode], [records.baseline, mode]):
        shown = " / ".join(crossings.values())
        return f"Run {mode} {at_rate(rate)} for workers living longer than {shown}; below that {records.baseline}"
    reason = table[max(table, key=float)][rate].reason
    if len(steps) == 1:
        return f"Run {mode} {at_rate(rate)} at every lifetime tested ({reason})"
    shorter = ", ".join(f"{name} from {at}" for name, at in reversed(steps[1:-1]))
    below = f"{shorter}, {steps[0][0]} below" if shorter else f"{steps[0][0]} below"
    return f"Run {mode} {at_rate(rate)} for workers that live {steps[-1][1]} or longer ({reason}), {below}"


def _crossing(entry: BreakEven, cache: str) -> str:
    doubt = " (undecided)" if entry.answer == "undecided" else ""
    return f"{seconds(entry.lifetime_s or 0.0)} {cache}{doubt}"


def _ladder(table: Table, rate: str) -> list[tuple[str, str]]:
    """Choices by ascending lifetime, each with the first lifetime it holds for."""
    steps: list[tuple[str, str]] = []
    for lifetime in sorted(table, key=float):
        choice = table[lifetime].get(rate)
        if choice and (not steps or steps[-1][0] != choice.mode):
            steps.append((choice.mode, seconds(float(lifetime))))
    return steps


def seconds(value: float) -> str:
    """A duration in the unit people would say it in."""
    for size, unit in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")):
        if value >= 3 * size or value == size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} s"


def configuration(records: StudyRecords, mode: str) -> str:
    """Text to copy: how the recommended mode is switched on, as its file in conf/mode states it."""
    node = records.configs.get(mode, {}).get("mode", {})
    return str(node.get("configuration", "")) if isinstance(node, Mapping) else ""
