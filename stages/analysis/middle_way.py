"""Useful completions of a worker that serves eager while it compiles, and then in the mode.

Between its first token and the switch it serves what eager serves at that rate, at most eager's capacity slowed by what
compiling takes from a step; nothing in the last gap before the switch; the mode's goodput afterwards. The backlog of
the start is left out, so that the curve is a lower bound next to those of `lifetimes`.
"""

from __future__ import annotations

from stages.analysis import services
from stages.analysis.lifetimes import Service
from stages.analysis.reading import StudyRecords
from stages.core.records.startup import MiddleWay


def completions(lifetime_s: float, eager: Service, mode: Service, middle: MiddleWay) -> float:
    """Completions of a life of that many seconds. Raises AssertionError for a middle way that was not measured."""
    assert middle.first_served_s is not None, "the first token has a time"
    assert middle.switched_s is not None, "the switch has a time"
    serving_s = min(lifetime_s, middle.switched_s - (middle.switch_gap_s or 0.0)) - middle.first_served_s
    return goodput_meanwhile(eager, middle) * max(0.0, serving_s) + mode.goodput_per_s * max(0.0, lifetime_s - middle.switched_s)


def goodput_meanwhile(eager: Service, middle: MiddleWay) -> float:
    """Useful requests/s of eager while the compiler runs beside it."""
    alone, during = middle.eager_alone_ms, middle.eager_during_ms
    slowed = min(1.0, alone / during) if alone and during else 1.0
    return min(eager.goodput_per_s, eager.capacity_per_s * slowed)


def curves(records: StudyRecords, mode: str, rates: list[str], grid: list[float]) -> dict[str, list[list[float]]]:
    """Rate -> [[lifetime_s, completions], ...]; empty where the middle way, or a load, was not measured."""
    startup, load = records.warmup[mode].data, records.load[mode].data
    base_startup, base_load = records.warmup[records.baseline].data, records.load[records.baseline].data
    middle = startup.middle_way if startup else None
    if not (startup and load and base_startup and base_load and middle and middle.supported):
        return {}
    found = {}
    for rate in rates:
        own = services.corners(startup, load, rate, "cold")
        eager = services.corners(base_startup, base_load, rate, "cold")
        if own and eager:
            found[rate] = [[at, completions(at, eager.point, own.point, middle)] for at in grid]
    return found
