"""One study measured twice on the same machine: do the numbers come back, and do the intervals say so.

A cell's interval of the difference between the runs (Welch, 1947: two samples of set means of its logarithm, each with its
own variance) should contain 0 in 95 % of the cells; and the medians of modes that replay should move little.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from stages.analysis.comparison_rules import at, number
from stages.analysis.statistics import CONFIDENCE

LEAST_COVERED = 0.95
LARGEST_MOVE = 0.01
LEAST_STILL = 0.90
Study = Mapping[str, Any]


@dataclass(frozen=True)
class CellShift:
    """One cell at one point: the second run's time / the first's, with its interval."""

    factorial: str
    point: str
    cell: str
    mode: str
    ratio: float
    low: float
    high: float

    @property
    def is_covered(self) -> bool:
        """Whether the interval of the difference contains 0."""
        return self.low <= 1 <= self.high


@dataclass(frozen=True)
class MedianMove:
    """Median step time of a mode that replays, in both runs, us."""

    mode: str
    shape: str
    before_us: float
    after_us: float

    @property
    def move(self) -> float:
        """Relative change."""
        return self.after_us / self.before_us - 1

    @property
    def is_still(self) -> bool:
        """Whether it moved at most 1 %."""
        return abs(self.move) <= LARGEST_MOVE


@dataclass(frozen=True)
class Repeat:
    """Both tables, and whether the numbers came back; None where there is nothing to judge (one set, no replay)."""

    cells: Sequence[CellShift]
    medians: Sequence[MedianMove]

    @property
    def covered(self) -> float | None:
        """Share of the cells whose interval contains 0."""
        return sum(cell.is_covered for cell in self.cells) / len(self.cells) if self.cells else None

    @property
    def still(self) -> float | None:
        """Share of the medians that moved at most 1 %."""
        return sum(median.is_still for median in self.medians) / len(self.medians) if self.medians else None

    @property
    def holds(self) -> bool:
        """At least 95 % of the intervals contain 0, and 90 % of the medians moved at most 1 %."""
        return (self.covered or 0.0) >= LEAST_COVERED and (self.still or 0.0) >= LEAST_STILL


def repeat(before: Study, after: Study) -> Repeat:
    """What two studies have in common; cells need two sets in both."""
    return Repeat(list(_cells(before, after)), list(_medians(before, after)))


def welch(first: Sequence[float], second: Sequence[float]) -> tuple[float, float, float]:
    """Difference of the means, second - first, with its interval at 95 %; both samples need two values."""
    difference = float(np.mean(second) - np.mean(first))
    parts = [float(np.var(values, ddof=1)) / len(values) for values in (first, second)]
    squared = sum(parts)
    if squared == 0:
        return difference, difference, difference
    freedom = squared**2 / sum(part**2 / (len(values) - 1) for part, values in zip(parts, (first, second), strict=True))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(squared)
    return difference, difference - half, difference + half


def _cells(before: Study, after: Study) -> Iterator[CellShift]:
    for factorial, answer in at(before, "attribution").items():
        other = at(after, "attribution", factorial)
        for point in answer:
            sets = at(answer, point, "set_us"), at(other, point, "set_us")
            for cell in (cell for cell in sets[0] if len(sets[0][cell]) > 1 and len(sets[1].get(cell, [])) > 1):
                value, low, high = welch(*([math.log(us) for us in side[cell]] for side in sets))
                mode = str(at(answer, "cells").get(cell))
                yield CellShift(factorial, point, cell, mode, math.exp(value), math.exp(low), math.exp(high))


def _medians(before: Study, after: Study) -> Iterator[MedianMove]:
    for mode, found in at(before, "modes").items():
        if at(found, "claim").get("replay") in (None, "none"):
            continue
        for phase in ("decode", "prefill"):
            for size, times in at(found, "steady_state", phase).items():
                first = number(at(times, "wall_us").get("median"))
                second = number(at(after, "modes", mode, "steady_state", phase, size, "wall_us").get("median"))
                if first and second:
                    yield MedianMove(mode, f"{phase}/{size}", first, second)
