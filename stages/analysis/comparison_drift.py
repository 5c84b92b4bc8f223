"""How far apart two single measurements must be: the machine's own drift between two studies is the yardstick.

One process a study cannot tell a slower release from a slower machine. So a value without an interval is judged only
beyond what the baseline itself moved between the two studies, and a speed-up beyond what A/A pairs (one mode twice in
a rotation) differ in either study. Intervals on both sides need no yardstick. A step time with two sets of processes or
more in both studies has a veto: where Welch's interval of the change holds none, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stages.analysis import comparison_rules as rules
from stages.analysis.comparison_rules import Study, at, number
from stages.analysis.lifetimes import CACHES
from stages.analysis.repeat import shifts

_LATENCIES = (("ttft_ms", "p50"), ("tpot_ms", "p50"))


@dataclass(frozen=True)
class Yardstick:
    """Least distances for single values, as shares: of starts, of step times, of speed-ups, of latencies under load.

    `changes`: the interval of B / A over sets of processes, by factorial, mode and point.
    """

    startup: float = rules.STARTUP_DISTANCE
    time: float = rules.TIME_DISTANCE
    speedup: float = rules.SPEEDUP_DISTANCE
    latency: float = rules.STARTUP_DISTANCE
    changes: Mapping[tuple[str, str, str], tuple[float, float]] = field(default_factory=dict)

    def why(self, distance: float, least: float) -> str:
        """What to tell a reader where the machine asks for more than the least distance."""
        return f"single values: judged beyond {100 * distance:.0f} %, what the machine moved" if distance > least else ""


def yardstick(before: Study, after: Study) -> Yardstick:
    """From the baseline's starts, step times and latencies in both studies, and their A/A pairs."""
    name = str(after.get("baseline", "eager"))
    first, second = at(before, "modes", name), at(after, "modes", name)
    time = _moved(_times(first), _times(second))
    return Yardstick(
        startup=max(rules.STARTUP_DISTANCE, _moved(_starts(first), _starts(second))),
        time=max(rules.TIME_DISTANCE, time),
        speedup=max(_twins(before), _twins(after)),
        latency=max(rules.STARTUP_DISTANCE, time, _moved(_latencies(first), _latencies(second))),
        changes=_changes(before, after),
    )


def _changes(before: Study, after: Study) -> dict[tuple[str, str, str], tuple[float, float]]:
    pairs = {name: (at(before, "attribution", name), at(after, "attribution", name)) for name in at(after, "attribution")}
    found = [shift for name, pair in pairs.items() for shift in shifts(name, *pair)]
    return {(shift.factorial, shift.mode, shift.point): (shift.low, shift.high) for shift in found}


def _moved(before: Mapping[str, float], after: Mapping[str, float]) -> float:
    """The largest change of a value that both have: max(b / a, a / b) - 1; 0 without one."""
    pairs = [(before[key], after[key]) for key in before if key in after]
    return max((max(first / second, second / first) - 1 for first, second in pairs), default=0.0)


def _positive(values: Iterable[tuple[str, Any]]) -> dict[str, float]:
    return {key: found for key, value in values if (found := number(value)) is not None and found > 0}


def _starts(mode: Mapping[str, Any]) -> dict[str, float]:
    return _positive((cache, at(mode, "startup", cache).get("ready_s")) for cache in CACHES)


def _times(mode: Mapping[str, Any]) -> dict[str, float]:
    """Medians by shape; the sequence only where it has no interval."""
    steady = at(mode, "steady_state")
    shapes = {
        f"{phase}/{size}": at(times, "wall_us").get("median")
        for phase in ("decode", "prefill")
        for size, times in at(steady, phase).items()
    }
    sequence = at(steady, "sequence", "sequence_s")
    return _positive([*shapes.items(), ("sequence", None if sequence.get("low") else sequence.get("value"))])


def _latencies(mode: Mapping[str, Any]) -> dict[str, float]:
    runs = {rate: run for rate, run in at(mode, "load").items() if "request_goodput" in at(run)}
    return _positive((f"{rate} {name}", at(run, name).get(which)) for rate, run in runs.items() for name, which in _LATENCIES)


def _twins(study: Study) -> float:
    """The largest difference of an A/A pair; without pairs nothing vouches for the machine."""
    lists = [at(found, "twins").get("pairs") for found in at(study, "attribution").values()]
    ratios = [number(at(pair).get("ratio")) for pairs in lists if isinstance(pairs, list) for pair in pairs]
    found = [max(ratio, 1 / ratio) - 1 for ratio in ratios if ratio]
    return max(rules.SPEEDUP_DISTANCE, *found) if found else rules.UNVOUCHED_DISTANCE
