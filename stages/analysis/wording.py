"""The verdict in sentences, each with the numbers it rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stages.analysis import services
from stages.analysis.reading import StudyRecords
from stages.core.records.answer import ModeAnswer
from stages.core.records.lifetime import BreakEven
from stages.core.records.verdict import Choice, Span

Table = Mapping[str, Mapping[str, Choice]]
Spans = dict[str, dict[str, list[Span]]]

UNDECIDED = "undecided"
LONG_UNITS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
"""Seconds and name, the longest first."""


def at_rate(rate: str) -> str:
    """A rate key in words."""
    words = {services.SATURATION: "at saturation", "recorded": "at the recorded rate"}
    return words.get(rate) or f"at {rate} requests/s"


def headline_mode(table: Table, records: StudyRecords) -> str:
    """The choice for the longest lifetime at the first arrival rate: what a lasting service should run."""
    lasting = table.get(f"{max(records.params.lifetimes_s):g}", {})
    return next((lasting[rate].mode for rate in services.verdict_rates(records.params) if rate in lasting), UNDECIDED)


def sentence(records: StudyRecords, answers: Mapping[str, ModeAnswer], table: Table, along: Spans) -> str:
    """The verdict in one sentence."""
    if not table:
        return f"Undecided: no mode, {records.baseline} included, has both a start and a load record to compare."
    longest = max(table, key=float)
    lasting, lived = table[longest], _lived(longest)
    first = next(iter(lasting))
    headline, spans = lasting[first].mode, along.get(first, {})
    if headline == UNDECIDED:
        start = f"Undecided {at_rate(first)} {lived}: {lasting[first].reason}" + below(spans)
    elif headline == records.baseline:
        start = f"Run {headline} {at_rate(first)}: no other mode that may be recommended is ahead {lived}" + below(spans)
    elif len(spans["cold"]) == 1 and all(row[first].mode == headline for row in table.values()):
        start = f"Run {headline} {at_rate(first)} at every lifetime tested ({lasting[first].reason})"
    else:
        found = answers[headline].lifetime
        since = _since(spans, headline, found.break_even.get(first, {}) if found else {}, records.baseline, min(map(float, table)))
        under = below(spans) or "; below that no mode completes anything"
        start = f"Run {headline} {at_rate(first)} for workers living longer than {since}{under}"
    others = [f"{at_rate(rate)} {choice.mode}" for rate, choice in lasting.items() if choice.mode not in (headline, UNDECIDED)]
    return start + "".join(f"; {other}" for other in others) + "."


def staying(records: StudyRecords, table: Table) -> str:
    """The verdict where nothing separates any mode from the baseline, and nothing is missing."""
    longest = max(table, key=float)
    first, choice = next(iter(table[longest].items()))
    better = f"no mode is measurably better {_lived(longest)} ({choice.reason})"
    return f"Stay with {records.baseline} {at_rate(first)}, by parsimony: {better}."


def _lived(lifetime_s: str) -> str:
    return f"for workers that live {seconds(float(lifetime_s))} from cold caches"


def _since(spans: Mapping[str, list[Span]], mode: str, break_even: Mapping[str, BreakEven], baseline: str, shortest_s: float) -> str:
    """From which lifetime on, by cache state. Where only the baseline was ahead before, it is the break-even."""
    times, others = [], []
    for cache in [name for name in ("cold", "warm") if name in spans]:
        found, even = spans[cache], break_even.get(cache)
        if found[-1].mode != mode:
            others.append(f" ({cache}: {found[-1].mode} from {seconds(found[-1].from_s)})")
        elif len(found) == 1 and found[0].from_s <= shortest_s:
            others.append(f", any lifetime {cache}")
        elif even and _is_break_even(found, even, baseline):
            times.append(_crossing(even, cache))
        else:
            times.append(f"{seconds(found[-1].from_s)} {cache}")
    return " / ".join(times) + "".join(others)


def _is_break_even(found: list[Span], even: BreakEven, baseline: str) -> bool:
    """The rule may decide a little before the break-even, where completions are equal and latency is better."""
    if even.lifetime_s is None or [span.mode for span in found[:-1]] != [baseline]:
        return False
    low = even.lifetime_s * 0.95 if even.low_s is None else min(even.low_s, even.lifetime_s * 0.95)
    return low <= found[-1].from_s <= even.lifetime_s * 1.05


def below(spans: Mapping[str, list[Span]]) -> str:
    """What to run for shorter lives from cold caches, and where the measurements do not decide."""
    cold = spans.get("cold", [])
    if len(cold) < 2:
        return ""
    ends = _ends(cold, spans.get("warm", []))
    said, at = [], ends[-1] if cold[-1].mode == UNDECIDED else "that"
    for span, until in zip(reversed(cold[:-1]), reversed(["", *ends[:-1]]), strict=True):
        if span.mode != UNDECIDED:
            said.append(f"below that {span.mode}" if at == "that" else f"{span.mode} below {at}")
        at = until
    between = cold[-2].mode == UNDECIDED
    if not said:
        return "; below that undecided"
    return "; " + ", ".join(said) + ("; undecided between" if between else "")


def _ends(cold: Sequence[Span], warm: Sequence[Span]) -> list[str]:
    """From when on each span but the first holds, by cache state; from warm caches where the modes are the same."""
    same = [span.mode for span in cold] == [span.mode for span in warm]
    times = [[f"{seconds(span.from_s)} {cache}" for span in found[1:]] for cache, found in (("cold", cold), ("warm", warm if same else []))]
    return [" / ".join(found) for found in (zip(*times, strict=True) if same else ((one,) for one in times[0]))]


def _crossing(entry: BreakEven, cache: str) -> str:
    doubt = " (undecided)" if entry.answer == "undecided" else ""
    return f"{seconds(entry.lifetime_s or 0.0)} {cache}{doubt}"


def seconds(value: float) -> str:
    """A duration in the unit people would say it in."""
    for size, unit in LONG_UNITS:
        if value >= 3 * size or value == size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} s"


def configuration(records: StudyRecords, mode: str) -> str:
    """Text to copy: how the recommended mode is switched on, as its file in conf/mode states it."""
    node = records.configs.get(mode, {}).get("mode", {})
    return str(node.get("configuration", "")) if isinstance(node, Mapping) else ""


def runner_up(table: Table) -> str:
    """The runner-up of the headline's choice, empty if none."""
    lasting = table[max(table, key=float)] if table else {}
    return next(iter(lasting.values())).runner_up or "" if lasting else ""


def configurations(records: StudyRecords, modes: Sequence[str]) -> dict[str, str]:
    """What to copy for each of these modes, those that state nothing left out."""
    found = {mode: configuration(records, mode) for mode in modes}
    return {mode: text for mode, text in found.items() if text}
