"""One cell of two runs at equal host speed: what is left of their difference once the host's own is taken out.

The second run's times are brought to the host's speed of the first by the elasticity of the step (`host_following`), of both
runs together but from inside them, never from their difference; how uncertain it is widens the interval. A step that gets
faster where the host gets slower has another reason, and is left as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from stages.analysis.comparison_rules import Study, at, number
from stages.analysis.statistics import welch

LEAST, MOST = 1e-6, 10.0  # of an elasticity and its error
LONGEST_LOOP_US = 1e6


@dataclass(frozen=True)
class EqualHost:
    """`loop_ratio`: the host's loop in the second run / in the first. The rest as in a cell's shift, at equal loops."""

    loop_ratio: float
    elasticity: float
    standard_error: float
    ratio: float
    low: float
    high: float

    @property
    def host_ratio(self) -> float:
        """What the host's speed alone makes of the time."""
        return math.exp(self.elasticity * math.log(self.loop_ratio))


def equal_host(first: Study, second: Study, point: str, cell: str) -> EqualHost | None:
    """The second run's time / the first's at equal host speed; None where a run does not know how the cell follows its host."""
    sides = [at(side, "follows_host", point, cell) for side in (first, second)]
    times_us = [at(side, point, "set_us").get(cell, []) for side in (first, second)]
    loops_us = [side.get("set_loop_us", []) for side in sides]
    if not all(_known(side) and len(loop) == len(time) for side, loop, time in zip(sides, loops_us, times_us, strict=True)):
        return None
    elasticity, standard_error = _pooled([(side["elasticity"], side["standard_error"]) for side in sides])
    loops = [[math.log(us) for us in found] for found in loops_us]
    moved = sum(loops[1]) / len(loops[1]) - sum(loops[0]) / len(loops[0])
    first_rest, second_rest = (
        [math.log(us) - elasticity * loop for us, loop in zip(*pair, strict=True)] for pair in zip(times_us, loops, strict=True)
    )
    value, low, high = welch(first_rest, second_rest, (moved * standard_error) ** 2)
    return EqualHost(math.exp(moved), elasticity, standard_error, math.exp(value), math.exp(low), math.exp(high))


def _known(side: Study) -> bool:
    """Whether it has all that it takes, of sizes that an elasticity, its error and a loop in us can have."""
    slope, error, loops = number(side.get("elasticity")), number(side.get("standard_error")), side.get("set_loop_us")
    if slope is None or error is None or not isinstance(loops, list) or not loops:
        return False
    return abs(slope) <= MOST and LEAST <= error <= MOST and all(1.0 <= (number(us) or 0.0) <= LONGEST_LOOP_US for us in loops)


def _pooled(slopes: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Weighted by their variances, at least 0; where they differ by more than their errors, the error grows (R. T. Birge, 1932)."""
    weights = [1 / error**2 for _, error in slopes]
    mean = sum(weight * slope for weight, (slope, _) in zip(weights, slopes, strict=True)) / sum(weights)
    squares = sum(weight * (slope - mean) ** 2 for weight, (slope, _) in zip(weights, slopes, strict=True))
    return max(0.0, mean), math.sqrt(max(1.0, squares / (len(slopes) - 1)) / sum(weights))
