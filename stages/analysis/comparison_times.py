"""Two studies of the same work: start-up, caches, steady state, answers, load and memory of one mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from stages.analysis import comparison_rules as rules
from stages.analysis.comparison_drift import Yardstick
from stages.analysis.comparison_rules import Difference, at, counted, delivered, judged, number, ranked, shown
from stages.analysis.lifetimes import CACHES
from stages.core.service_levels import ATTAINMENT

STARTUP, CACHE, STEADY, ANSWERS, LOAD, MEMORY = "startup", "caches", "steady_state", "correctness", "load", "memory"
PHASE_SHARE = 0.05  # of A's ready time: a phase must move by that much
_LATENCIES = (("ttft_ms", "p50"), ("ttft_ms", "p99"), ("tpot_ms", "p50"), ("tpot_ms", "p99"))


def startup(mode: str, before: Mapping[str, Any], after: Mapping[str, Any], least: Yardstick) -> Iterator[Difference]:
    """Ready time and first request by cache state, then every phase that takes part in it."""
    for cache in CACHES:
        first, second = at(before, "startup", cache), at(after, "startup", cache)
        for key, subject in (("ready_s", "ready"), ("first_request_s", "first request")):
            yield from _start(mode, f"{subject} from {cache} (s)", key, (first, second), least)
        for phase in at(first, "phases"):
            yield from _phase(mode, cache, phase, (first, second), least)


def _start(mode: str, subject: str, key: str, pair: tuple[Mapping[str, Any], Mapping[str, Any]], least: Yardstick) -> Iterator[Difference]:
    """Few starts need a long distance; with three on each side a shorter one will do if their ranges are apart."""
    first, second = pair
    repeated, distance = _are_repeated(pair), _distance(pair, least)
    why = "" if repeated else least.why(distance, rules.STARTUP_DISTANCE)
    for row in judged(STARTUP, mode, subject, (first.get(key), second.get(key)), distance, higher_is_better=False, why=why):
        overlap = repeated and key == "ready_s" and not _apart(first, second) and row.judgement in ("better", "worse")
        yield replace(row, judgement="undecided", why="ranges of the starts overlap") if overlap else row


def _are_repeated(pair: tuple[Mapping[str, Any], Mapping[str, Any]]) -> bool:
    return all((number(side.get("n")) or 0) >= rules.FEWEST_STARTS for side in pair)


def _distance(pair: tuple[Mapping[str, Any], Mapping[str, Any]], least: Yardstick) -> float:
    return rules.REPEATED_START_DISTANCE if _are_repeated(pair) else least.startup


def _apart(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    sides = [(number(side.get("low_s")), number(side.get("high_s"))) for side in (first, second)]
    (low, high), (other_low, other_high) = sides
    if low is None or high is None or other_low is None or other_high is None:
        return False
    return high < other_low or other_high < low


def _phase(mode: str, cache: str, phase: str, pair: tuple[Mapping[str, Any], Mapping[str, Any]], least: Yardstick) -> Iterator[Difference]:
    """A phase explains the ready time: it is worse (better) only with it. Below 5 % of A's ready time it is `same`."""
    first, second = (number(at(side, "phases").get(phase)) for side in pair)
    ready_s = number(pair[0].get("ready_s"))
    if first is None or second is None or not ready_s or max(first, second) < PHASE_SHARE * ready_s:
        return
    floor_s = 0.01 * ready_s  # a phase that was not there: its ratio must stay finite
    distance = _distance(pair, least)
    judgement = rules.judged_ratio(max(first, floor_s), max(second, floor_s), distance, higher_is_better=False)
    if abs(second - first) < PHASE_SHARE * ready_s:
        judgement = "same"
    ready = rules.judged_ratio(ready_s, number(pair[1].get("ready_s")) or ready_s, distance, higher_is_better=False)
    shifted = judgement in ("better", "worse") and judgement != ready
    why = f"moved alone: ready is {ready}" if shifted else ""
    yield Difference(
        STARTUP,
        mode,
        f"{phase.removesuffix('_s')} from {cache} (s)",
        shown(first),
        shown(second),
        "undecided" if shifted else judgement,
        why,
    )


def caches(mode: str, before: Mapping[str, Any], after: Mapping[str, Any], _least: Yardstick) -> Iterator[Difference]:
    """Whether each start was in the cache state that it claims, and what hit, missed and bypassed."""
    for cache in CACHES:
        first, second = at(before, "startup", cache), at(after, "startup", cache)
        if first and second:
            yield ranked(CACHE, mode, f"{cache} start", _proved(first), _proved(second), rules.PROOF)
            yield from _look_ups(mode, cache, at(first, "cache_use"), at(second, "cache_use"))


def _look_ups(mode: str, cache: str, first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[Difference]:
    for name in ("fx_graph_misses", "aot_autograd_misses", "fx_graph_bypasses"):
        for row in counted(CACHE, mode, f"{name}, {cache}", (first.get(name), second.get(name))):
            if (row.before, row.after) != ("0", "0"):
                yield row


def _proved(start: Mapping[str, Any]) -> str:
    """Studies of earlier releases say only whether the state was proved."""
    found = start.get("verdict")
    return str(found) if found else "confirmed" if start.get("proved") else "not_proven"


def steady_state(mode: str, before: Mapping[str, Any], after: Mapping[str, Any], least: Yardstick) -> Iterator[Difference]:
    """Speed-ups (for modes that may be credited in both) and times, the sequence first."""
    first, second = _points(before), _points(after)
    credited = all(_is_credited(side) for side in (before, after))
    for name in (name for name in first if name in second):
        speedups = [at(point, "vs_baseline") for point in (first[name], second[name])]
        if credited and all(speedups):
            pair = tuple({**side, "value": side.get("speedup")} for side in speedups)
            why = "" if rules.have_intervals(*pair) else least.why(least.speedup, rules.SPEEDUP_DISTANCE)
            yield from judged(STEADY, mode, f"speed-up, {name}", (pair[0], pair[1]), least.speedup, higher_is_better=True, why=why)
        times = [point.get("sequence_s") or at(point, "wall_us").get("median") for point in (first[name], second[name])]
        unit = "s" if name == "sequence" else "us, median"
        why = "" if rules.have_intervals(*times) else least.why(least.time, rules.TIME_DISTANCE)
        rows = judged(STEADY, mode, f"time, {name} ({unit})", (times[0], times[1]), least.time, higher_is_better=False, why=why)
        change = least.changes.get((str(first[name].get("factorial")), mode, name.removeprefix("decode/")))
        yield from (_vetoed(row, change) for row in rows)


def _vetoed(row: Difference, change: tuple[float, float] | None) -> Difference:
    """A time that moved far enough is undecided all the same where the sets of processes tell no change."""
    if change is None or row.judgement not in ("better", "worse") or not change[0] <= 1 <= change[1]:
        return row
    return replace(row, judgement="undecided", why=f"over sets of processes B is {change[0]:.2f} to {change[1]:.2f} of A")


def _points(mode: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    shapes = {f"{phase}/{size}": times for phase in ("decode", "prefill") for size, times in at(mode, "steady_state", phase).items()}
    sequence = at(mode, "steady_state", "sequence")
    return ({"sequence": sequence} if sequence else {}) | {name: at(times) for name, times in shapes.items()}


def _is_credited(mode: Mapping[str, Any]) -> bool:
    return rules.PROOF.get(str(at(mode, "evidence").get("verdict")), 0) == 2 and at(mode, "correctness").get("verdict") != "wrong"


def answers(mode: str, before: Mapping[str, Any], after: Mapping[str, Any], _least: Yardstick) -> Iterator[Difference]:
    """The verdict on the answers, and each check that one of the studies failed."""
    first, second = at(before, "correctness"), at(after, "correctness")
    yield ranked(ANSWERS, mode, "answers", first.get("verdict"), second.get("verdict"), {"correct": 1, "wrong": 0})
    checks = [_checks(side) for side in (first, second)]
    for name in sorted({*checks[0]} & {*checks[1]}):
        words = checks[0][name], checks[1][name]
        if words != ("pass", "pass"):
            yield ranked(ANSWERS, mode, name, *words, {"pass": 1, "fail": 0})


def _checks(correctness: Mapping[str, Any]) -> dict[str, str]:
    found = correctness.get("checks")
    rows = [at(check) for check in found] if isinstance(found, list) else []
    return {f"{row.get('name')}, {row.get('subject')}": str(row.get("verdict")) for row in rows}


def load(mode: str, before: Mapping[str, Any], after: Mapping[str, Any], least: Yardstick) -> Iterator[Difference]:
    """Goodput and latencies at the rates that both studies offered, if both had the same limits."""
    first, second = at(before, "load"), at(after, "load")
    if not first or not second or first.get("slo") != second.get("slo"):
        return
    common = [rate for rate in _rates(first) if rate in _rates(second)]
    yield from _highest(mode, first, second, common)
    for rate in common:
        yield from _at_rate(mode, rate, at(first, rate), at(second, rate), least)


def _rates(load: Mapping[str, Any]) -> list[str]:
    return [rate for rate, run in load.items() if "request_goodput" in at(run)]


def _highest(mode: str, first: Mapping[str, Any], second: Mapping[str, Any], common: list[str]) -> Iterator[Difference]:
    """None says that no rate met the limits. That counts if a search found none, or the other met one that both were offered."""
    sides = (first, second)
    met_one = any((number(at(side, rate).get("slo_attainment")) or 0.0) >= ATTAINMENT for side in sides for rate in common)
    bound = any(side.get("max_goodput_is_lower_bound") for side in sides)
    why = "a lower bound: no offered rate was missed" if bound else ""
    if all("max_goodput" in side and (side["max_goodput"] or met_one or side.get("search")) for side in sides):
        pair = (first["max_goodput"], second["max_goodput"])
        yield from delivered(
            LOAD, mode, "max goodput (1/s)", pair, rules.SPEEDUP_DISTANCE, collapse="none: no rate met the limits", why=why
        )


def _at_rate(mode: str, rate: str, first: Mapping[str, Any], second: Mapping[str, Any], least: Yardstick) -> Iterator[Difference]:
    goodput = (first.get("request_goodput"), second.get("request_goodput"))
    yield from delivered(LOAD, mode, f"goodput at {rate} (1/s)", goodput, rules.SPEEDUP_DISTANCE)
    for name, percentile in _LATENCIES:
        pair = (at(first, name).get(percentile), at(second, name).get(percentile))
        subject = f"{name.removesuffix('_ms')} {percentile} at {rate} (ms)"
        why = least.why(least.latency, rules.STARTUP_DISTANCE)
        yield from judged(LOAD, mode, subject, pair, least.latency, higher_is_better=False, why=why)


def memory(mode: str, before: Mapping[str, Any], after: Mapping[str, Any], _least: Yardstick) -> Iterator[Difference]:
    """Device memory. On a CPU (nothing outside the allocator) it would be the resident set, which depends on torch's build."""
    first, second = at(before, "memory"), at(after, "memory")
    if not first.get("outside_allocator_bytes") or not second.get("outside_allocator_bytes"):
        return
    for name in ("peak_bytes", "graph_pool_bytes"):
        pair = (first.get(name), second.get(name))
        yield from judged(MEMORY, mode, name, pair, rules.SPEEDUP_DISTANCE, higher_is_better=False)
