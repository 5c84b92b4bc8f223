"""Useful completions of a worker against its lifetime, and where a mode overtakes the baseline for good.

Fluid model of one worker, started at 0 and ready at R, offered r requests a second of which it serves g within the
limits, at most c in all. Requests that arrive during the start wait. New ones go first; spare capacity c - g serves the
backlog, oldest first, and only what has waited less than the TTFT limit T still counts. So, with x = L - R >= 0:

    completions(L) = g x + min(g min(T, R), (c - g) min(x, T))

and 0 before R. The first term with g = min(r, max_goodput) is the closed form; the second is the backlog of the start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from stages.core.records.lifetime import BreakEven

TOLERANCE = 1e-9
EQUAL_SHARE = 0.01  # completions, or arrivals served, that differ by less are equal
CACHES = ("cold", "warm", "artifact")
"""What a worker can start from, the slowest first."""


class Service(NamedTuple):
    """What one mode delivers at one arrival rate: seconds to ready, useful requests/s, capacity in requests/s, TTFT limit."""

    ready_s: float
    goodput_per_s: float
    capacity_per_s: float
    ttft_limit_s: float = 0.0


class Corners(NamedTuple):
    """A service with its least and most favourable values. `complete`: every part of it was measured more than once."""

    point: Service
    worst: Service
    best: Service
    complete: bool


def completions(lifetime_s: float, service: Service) -> float:
    """Useful completions of a worker that lives `lifetime_s`, the backlog of its start included."""
    served_s = max(0.0, lifetime_s - service.ready_s)
    spare_per_s = max(0.0, service.capacity_per_s - service.goodput_per_s)
    waiting = service.goodput_per_s * min(service.ttft_limit_s, service.ready_s)
    return service.goodput_per_s * served_s + min(waiting, spare_per_s * min(served_s, service.ttft_limit_s))


def break_even(mode: Corners, baseline: Corners) -> BreakEven:
    """The smallest lifetime beyond which the mode stays ahead, from the points and from the opposed corners.

    `undecided` when the corners disagree on whether there is one. The interval is None where a part was measured once.
    """
    point = crossing_s(mode.point, baseline.point)
    earliest, latest = crossing_s(mode.best, baseline.worst), crossing_s(mode.worst, baseline.best)
    known = mode.complete and baseline.complete
    low, high = (_finite(earliest), _finite(latest)) if known else (None, None)
    if math.isinf(latest) != math.isinf(earliest):
        return BreakEven(answer="undecided", lifetime_s=_finite(point), low_s=low, high_s=high)
    if math.isinf(point):
        return BreakEven(answer="never", lifetime_s=None, low_s=None, high_s=None)
    return BreakEven(answer="always" if latest == 0 else "at", lifetime_s=point, low_s=low, high_s=high)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def crossing_s(mode: Service, baseline: Service) -> float:
    """The smallest lifetime beyond which the mode stays strictly ahead: 0 when never behind, infinity when there is none.

    Both curves are linear between their kinks, so the last sign change is exact.
    """
    knots = sorted({0.0, *_kinks(mode), *_kinks(baseline)})
    last = knots[-1]
    knots.append(last + 1.0)
    leads = [completions(knot, mode) - completions(knot, baseline) for knot in knots]
    scale = TOLERANCE * max(1.0, *(completions(knot, baseline) for knot in knots))
    slope = leads[-1] - leads[-2]
    if slope < -scale or (slope <= scale and leads[-2] <= scale):
        return math.inf
    if leads[-2] < -scale:
        return last - leads[-2] / slope
    return _last_crossing(knots[:-1], leads[:-1], scale)


def _last_crossing(knots: Sequence[float], leads: Sequence[float], scale: float) -> float:
    for index in range(len(knots) - 2, -1, -1):
        if leads[index] < -scale:
            span = knots[index + 1] - knots[index]
            return knots[index] - leads[index] * span / (leads[index + 1] - leads[index])
    return 0.0


def _kinks(service: Service) -> list[float]:
    ready_s, limit_s = service.ready_s, service.ttft_limit_s
    spare_per_s = max(0.0, service.capacity_per_s - service.goodput_per_s)
    waiting = service.goodput_per_s * min(limit_s, ready_s)
    filled_s = min(limit_s, waiting / spare_per_s) if spare_per_s > 0 else 0.0
    return [ready_s, ready_s + filled_s]


class Replaced(NamedTuple):
    """A worker that is replaced again and again: share of its life lost to starting, further workers for each one.

    `extra_workers` is None when a worker is never ready before it is replaced.
    """

    share_lost: float
    extra_workers: float | None


def replaced(ready_s: float, every_s: float) -> Replaced:
    """The cost of starting for a fleet whose workers are replaced every `every_s` seconds, `ready_s` to ready.

    With the share s lost, one worker's work needs 1 / (1 - s) workers. Raises AssertionError for a period of 0.
    """
    assert every_s > 0, "a worker lives some time"
    share = min(1.0, max(0.0, ready_s) / every_s)
    return Replaced(share, share / (1 - share) if share < 1 else None)


def grid_s(lifetimes_s: Sequence[float], num_points: int = 48) -> list[float]:
    """Lifetimes to draw: 0, geometric steps from 1 s to the longest asked for, and those asked for, ascending."""
    longest = max(lifetimes_s)
    first = min(1.0, longest)
    steps = [first * (longest / first) ** (index / (num_points - 1)) for index in range(num_points)]
    return sorted({0.0, *(float(f"{step:.4g}") for step in steps), *map(float, lifetimes_s)})
