"""Two studies of the same work, A before B: what became better, worse, stayed the same, or cannot be told.

Ratios with intervals on both sides are judged by the interval of their quotient against 1 %. Single values carry no
interval: they need a named distance before anything is said, larger for absolute times than for speed-ups, because
eager itself drifts between runs and a speed-up was taken inside one rotation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from stages.core.errors import UserError

Judgement = Literal["better", "worse", "same", "undecided"]
Study = Mapping[str, Any]

INTERVAL_MARGIN = 0.01
SPEEDUP_DISTANCE = 0.05
TIME_DISTANCE = 0.10
STARTUP_DISTANCE = 0.25
_PROOF = {"confirmed": 2, "settled": 2, "not_proven": 1, "not_settled": 1, "refuted": 0}
_MEASURED = ("attention_kernels", "weights_bytes", "parameters", "precision")
_SAME_TRACE = ("name", "requests", "steps", "shapes", "length_factor", "context_tokens", "max_batch")


@dataclass(frozen=True)
class Difference:
    """One quantity of one mode in both studies. `section`: evidence, startup, steady_state or correctness."""

    section: str
    mode: str
    subject: str
    before: str
    after: str
    judgement: Judgement


def compare(before: Study, after: Study) -> list[Difference]:
    """Every comparable quantity, evidence first. Raises UserError for studies of different model, trace or precision."""
    _check_comparable(before, after)
    shared = [mode for mode in after["modes"] if mode in before["modes"]]
    found = [row for mode in shared for row in _of_mode(mode, before["modes"][mode], after["modes"][mode])]
    found += [
        Difference("evidence", mode, "status", _status(before, mode), "not in B", "undecided")
        for mode in before["modes"]
        if mode not in shared
    ]
    order = ("evidence", "startup", "steady_state", "correctness")
    return sorted(found, key=lambda row: order.index(row.section))


def environment_changes(before: Study, after: Study) -> dict[str, tuple[Any, Any]]:
    """What differs between the machines and releases of two studies, lists and tables left out."""
    pair = before.get("environment", {}), after.get("environment", {})
    names = [name for name in {**pair[0], **pair[1]} if not isinstance(pair[1].get(name, pair[0].get(name)), dict | list)]
    return {name: (pair[0].get(name), pair[1].get(name)) for name in names if pair[0].get(name) != pair[1].get(name)}


def judged_ratio(before: Any, after: Any, distance: float, *, higher_is_better: bool) -> Judgement:
    """Judge after / before; each side is a number or `{value, low, high}`. Intervals decide; else `distance` does."""
    first, second = _interval(before), _interval(after)
    if first[1] != first[2] and second[1] != second[2]:
        low, high, margin = second[1] / first[2], second[2] / first[1], INTERVAL_MARGIN
        if low >= 1 - margin and high <= 1 + margin:
            return "same"
    else:
        low = high = second[0] / first[0]
        margin = distance
    if low > 1 + margin:
        return "better" if higher_is_better else "worse"
    if high < 1 - margin:
        return "worse" if higher_is_better else "better"
    return "undecided" if low != 1 or high != 1 else "same"


def _check_comparable(before: Study, after: Study) -> None:
    pairs = {"precision": (before["model"].get("precision"), after["model"].get("precision"))}
    for key in sorted({*before["model"], *after["model"]} - {*_MEASURED}):
        pairs[f"model.{key}"] = before["model"].get(key), after["model"].get(key)
    for key in _SAME_TRACE:
        pairs[f"trace.{key}"] = before["trace"].get(key), after["trace"].get(key)
    for key, (first, second) in pairs.items():
        if first != second:
            raise UserError(key, "must be the same in both studies", f"{first} and {second}", "Compare studies of the same work.")


def _of_mode(mode: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    yield _ranked("evidence", mode, "status", before.get("status"), after.get("status"), {"ok": 1, "failed": 0, "skipped": 0})
    if before.get("status") != "ok" or after.get("status") != "ok":
        return
    yield from _evidence(mode, _at(before, "evidence"), _at(after, "evidence"))
    yield from _startup(mode, _at(before, "startup"), _at(after, "startup"))
    yield from _steady_state(mode, before, after)
    verdicts = _at(before, "correctness").get("verdict"), _at(after, "correctness").get("verdict")
    yield _ranked("correctness", mode, "answers", *verdicts, {"correct": 1, "wrong": 0})


def _evidence(mode: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    yield _ranked("evidence", mode, "claim", before.get("verdict"), after.get("verdict"), _PROOF)
    counts: list[tuple[str, Any, Any]] = [(name, before.get(name), after.get(name)) for name in ("num_graph_breaks", "num_recompiles")]
    for subject, first, second in [("share of steps that fell back", _fallback_share(before), _fallback_share(after)), *counts]:
        if isinstance(first, int | float) and isinstance(second, int | float):
            judgement: Judgement = "worse" if second > first else "better" if second < first else "same"
            yield Difference("evidence", mode, subject, _shown(first), _shown(second), judgement)


def _startup(mode: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    for cache in ("cold", "warm", "artifact"):
        pair = [_start(_at(side, cache)) for side in (before, after)]
        yield from _judged("startup", mode, f"ready from {cache} (s)", pair, STARTUP_DISTANCE, higher_is_better=False)


def _steady_state(mode: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    first, second = _points(before), _points(after)
    credited = all(_is_credited(side) for side in (before, after))
    for name in (name for name in first if name in second):
        speedups = [_at(point, "vs_baseline") for point in (first[name], second[name])]
        if credited and all(speedups):
            pair: list[Any] = [{**side, "value": side.get("speedup")} for side in speedups]
            yield from _judged("steady_state", mode, f"speed-up, {name}", pair, SPEEDUP_DISTANCE, higher_is_better=True)
        times = [point.get("sequence_s") or _at(point, "wall_us").get("median") for point in (first[name], second[name])]
        unit = "s" if name == "sequence" else "us, median"
        yield from _judged("steady_state", mode, f"time, {name} ({unit})", times, TIME_DISTANCE, higher_is_better=False)


def _points(mode: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    steady_state = _at(mode, "steady_state")
    shapes = {f"{phase}/{size}": times for phase in ("decode", "prefill") for size, times in _at(steady_state, phase).items()}
    return ({"sequence": _at(steady_state, "sequence")} if _at(steady_state, "sequence") else {}) | shapes


def _judged(section: str, mode: str, subject: str, pair: Sequence[Any], distance: float, *, higher_is_better: bool) -> Iterator[Difference]:
    before, after = pair
    first, second = _interval(before)[0], _interval(after)[0]
    if first > 0 and second > 0:
        judgement = judged_ratio(before, after, distance, higher_is_better=higher_is_better)
        yield Difference(section, mode, subject, _shown(first), _shown(second), judgement)


def _ranked(section: str, mode: str, subject: str, before: Any, after: Any, ranks: Mapping[str, int]) -> Difference:
    judgement: Judgement = "same" if before == after else "undecided"
    if before != after and before in ranks and after in ranks:
        change = ranks[after] - ranks[before]
        judgement = "better" if change > 0 else "worse" if change < 0 else "undecided"
    return Difference(section, mode, subject, str(before), str(after), judgement)


def _interval(side: Any) -> tuple[float, float, float]:
    """Value, low, high; (0, 0, 0) where there is none."""
    if isinstance(side, Mapping):
        value = float(side.get("value") or 0.0)
        low, high = side.get("low"), side.get("high")
        return (value, float(low), float(high)) if low and high and low > 0 else (value, value, value)
    value = float(side or 0.0)
    return value, value, value


def _start(start: Mapping[str, Any]) -> dict[str, Any]:
    """A range over several starts is no interval of confidence: only the median is judged."""
    return {"value": start.get("ready_s")}


def _is_credited(mode: Mapping[str, Any]) -> bool:
    return _PROOF.get(str(_at(mode, "evidence").get("verdict")), 0) == 2 and _at(mode, "correctness").get("verdict") != "wrong"


def _at(node: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = node.get(key)
    return found if isinstance(found, Mapping) else {}


def _fallback_share(evidence: Mapping[str, Any]) -> float | None:
    num_steps = evidence.get("num_steps")
    return _at(evidence, "path_counts").get("fallback", 0) / num_steps if num_steps else None


def _status(study: Study, mode: str) -> str:
    return str(study["modes"][mode].get("status"))


def _shown(value: float) -> str:
    return f"{value:.4g}"
