"""One study measured twice on the same machine: do the numbers come back, and do the intervals say so.

A cell's interval of the difference between the runs (two samples of set means of its logarithm, each with its own
variance) should contain 0 in 95 % of the cells; and the medians of modes that replay should move little. Where both runs
read the host's speed they are judged at equal speed (`stages.analysis.equal_host`): no interval of one run knows how fast
the host will be another time. What only one of the runs has did not come back. A factorial whose record is in both studies
was measured once, and is no repeat.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from stages.analysis.comparison_rules import Study, at, number
from stages.analysis.equal_host import EqualHost, equal_host
from stages.analysis.factorials import LOAD_WEIGHTED, PLAN_WEIGHTED
from stages.analysis.repeat_medians import Key, MedianMove, medians
from stages.analysis.statistics import welch
from stages.core.errors import UserError

LEAST_COVERED = 0.95
LEAST_STILL = 0.90
SUMMED = (PLAN_WEIGHTED, LOAD_WEIGHTED)  # means of the cells at the batch sizes: no measurement of their own


class Place(NamedTuple):
    """Where and when a factorial was measured; empty where the study does not say, `gpu_uuid` also without a GPU."""

    hostname: str
    gpu_uuid: str
    started_at: str

    def is_machine_of(self, other: Place) -> bool:
        """Whether both are one host and one GPU."""
        return self[:2] == other[:2]


@dataclass(frozen=True)
class CellShift:
    """One cell at one point: the second run's time / the first's, with its interval; `equal`: the same at equal host speed."""

    factorial: str
    point: str
    cell: str
    mode: str
    ratio: float
    low: float
    high: float
    equal: EqualHost | None = None

    @property
    def is_covered(self) -> bool:
        """Whether the interval of the difference contains 0, as the times were measured."""
        return self.low <= 1 <= self.high

    @property
    def came_back(self) -> bool:
        """The same at equal host speed, where that is known."""
        return self.equal.low <= 1 <= self.equal.high if self.equal else self.is_covered


@dataclass(frozen=True)
class Repeat:
    """Both tables, and whether the numbers came back; a share is None where there is nothing to judge (one set, no replay).

    `lost_cells`, `lost_medians`: what only one of the runs has. `once`: factorials of which both studies hold one record.
    `places`: where the others ran, first and second time.
    """

    cells: Sequence[CellShift]
    medians: Sequence[MedianMove]
    lost_cells: Sequence[str] = ()
    lost_medians: Sequence[str] = ()
    once: Sequence[str] = ()
    places: Mapping[str, tuple[Place, Place]] = field(default_factory=dict)

    @property
    def covered(self) -> float | None:
        """Share of the cells whose interval contains 0, at equal host speed where that is known."""
        return _share(sum(cell.came_back for cell in self.cells), len(self.cells) + len(self.lost_cells))

    @property
    def reaches(self) -> list[float]:
        """How far the interval of each cell reaches to either side, as a share: smaller changes are not seen."""
        judged = [cell.equal or cell for cell in self.cells]
        return [math.sqrt(one.high / one.low) - 1 for one in judged]

    @property
    def still(self) -> float | None:
        """Share of the medians that moved at most 1 %."""
        return _share(sum(median.is_still for median in self.medians), len(self.medians) + len(self.lost_medians))

    @property
    def holds(self) -> bool:
        """At least 95 % of the intervals contain 0, and 90 % of the medians, where a mode replays, moved at most 1 %."""
        return (self.covered or 0.0) >= LEAST_COVERED and (self.still is None or self.still >= LEAST_STILL)


def repeat(before: Study, after: Study) -> Repeat:
    """What became of the factorials of both studies; cells need two sets in both.

    Raises UserError for step times that are no positive numbers, and where nothing was measured twice.
    """
    names = dict.fromkeys([*at(before, "attribution"), *at(after, "attribution")])
    pairs = {name: (at(before, "attribution", name), at(after, "attribution", name)) for name in names}
    once = [name for name, (first, second) in pairs.items() if _is_one_record(first, second)]
    again = {name: pair for name, pair in pairs.items() if name not in once}
    if once and not again:
        raise UserError("B", "must be A measured again", f"the same records ({', '.join(once)})", "Measure the second run anew.")
    cells, lost_cells = _cells(again)
    moves, lost_moves = medians(before, after, once, _host_ratios(cells))
    places = {name: (_place(first), _place(second)) for name, (first, second) in again.items()}
    return Repeat(cells, moves, lost_cells, lost_moves, once, places)


def shifts(factorial: str, first: Study, second: Study) -> Iterator[CellShift]:
    """The cells of one factorial that have an interval in both runs. Raises UserError."""
    on_one_machine = _place(first).is_machine_of(_place(second))  # another's loop says nothing about this one's
    for point in (point for point in first if point in second and point not in SUMMED):
        sets = _sets(first, point), _sets(second, point)
        for cell in sorted(sets[0].keys() & sets[1].keys()):
            before, after = ([math.log(us) for us in side[cell]] for side in sets)
            value, low, high = welch(before, after)
            mode, equal = str(at(first, "cells").get(cell)), equal_host(first, second, point, cell) if on_one_machine else None
            yield CellShift(factorial, point, cell, mode, math.exp(value), math.exp(low), math.exp(high), equal)


def _cells(factorials: Mapping[str, tuple[Study, Study]]) -> tuple[list[CellShift], list[str]]:
    """Cells of both runs, and those that one lacks or that have no interval beside others; of a heat each run may choose others."""
    found, lost = [], []
    for factorial, (first, second) in factorials.items():
        both = list(shifts(factorial, first, second))
        rest = _without_interval(first, second, {(shift.point, shift.cell) for shift in both})
        found += both
        lost += [] if at(first, "heat") or at(second, "heat") else [f"{factorial}, {cell} at {point}" for point, cell in rest]
    return found, lost


def _host_ratios(cells: Sequence[CellShift]) -> dict[Key, float]:
    """What the host alone makes of a mode's times, where that is known."""
    return {(cell.mode, _shape(cell.point), cell.factorial): cell.equal.host_ratio for cell in cells if cell.equal}


def _shape(point: str) -> str:
    return point if "/" in point else f"decode/{point}"


def _without_interval(first: Study, second: Study, known: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """Points and cells beside those that are known, where a run has intervals at all."""
    points = [point for point in dict.fromkeys([*first, *second]) if point not in SUMMED]
    there = [point for point in points if any([_sets(first, point), _sets(second, point)])]
    cells = [(point, cell) for point in there for cell in sorted({*at(first, point, "set_us"), *at(second, point, "set_us")})]
    return [one for one in cells if one not in known]


def _is_one_record(first: Study, second: Study) -> bool:
    """By when and where it was measured; in an older study, which does not say, by its times: two runs never have the same."""
    if at(first, "measured") and at(second, "measured"):
        return at(first, "measured") == at(second, "measured")
    times = [{point: at(side, point, "set_us") for point in side} for side in (first, second)]
    return any(times[0].values()) and times[0] == times[1]


def _sets(answer: Study, point: str) -> dict[str, Sequence[float]]:
    """Set means by cell, us, of the cells of a factorial with two sets or more at a point. Raises UserError."""
    found = at(answer, point, "set_us")
    for cell, means in found.items():
        if not (isinstance(means, list) and all((number(mean) or 0) > 0 for mean in means)):
            raise UserError(f"set_us of {cell} at {point}", "must be positive numbers of us", means, "Run dvc repro report again.")
    return {cell: means for cell, means in found.items() if len(means) > 1}


def _place(answer: Study) -> Place:
    measured = at(answer, "measured")
    return Place(*(str(measured.get(key) or "") for key in Place._fields))


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None
