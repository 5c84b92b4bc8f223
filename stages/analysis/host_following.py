"""How a cell's time goes with the speed of the host, from the loop of Python that was read beside it.

An elasticity: a step of elasticity 1 takes 5 % longer where the loop does, one of 0 does not notice. It is the slope of the
logarithm of a turn's time against that of its loop inside one run (least squares), so that it knows nothing of another run:
two runs on one machine whose host ran at another speed can be compared at equal speed (analysis of covariance, R. A. Fisher,
1932). A slope from readings with noise of their own comes out too small rather than too large.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from scipy import stats

from stages.analysis import rotations as turns
from stages.core.records.answer import HostFollowing
from stages.core.records.steps import Rotations

LEAST_TURNS = 4
SURE = 2.0  # standard errors


def following(rotations: Rotations, point: str) -> dict[str, HostFollowing]:
    """By cell, at a shape or for the sequence; without cells whose loop was not read in every turn, or that have few turns."""
    times, loops = turns.values_at(rotations, point), turns.loops_at(rotations, point)
    found = {}
    for cell in sorted({cell for cells in times.values() for cell in cells}):
        own = [turn for turn, cells in times.items() if cell in cells]
        if len(own) >= LEAST_TURNS and all(cell in loops.get(turn, {}) for turn in own):
            slope = _slope([loops[turn][cell] for turn in own], [times[turn][cell] for turn in own])
            found[cell] = HostFollowing(elasticity=slope[0], standard_error=slope[1], set_loop_us=turns.set_means(loops, cell))
    return found


def _slope(loops_us: Sequence[float], times_us: Sequence[float]) -> tuple[float, float]:
    """With its standard error; where the loop never changed nothing is known: 0, as far as the loop tells."""
    if min(loops_us) == max(loops_us):
        return 0.0, 0.0
    fit = stats.linregress([math.log(us) for us in loops_us], [math.log(us) for us in times_us])
    return float(fit.slope), float(fit.stderr)


def sentence(rotations: Rotations, objections: Collection[str]) -> list[str]:
    """Which modes of the sequence follow the host, and which do not; empty where none does for sure, or nothing was read."""
    modes = {cell.cell: cell.mode for cell in rotations.cells if cell.cell not in objections and not turns.is_twin(cell.cell)}
    found = {cell: one for cell, one in following(rotations, turns.SEQUENCE).items() if cell in modes}
    if not any(one.elasticity > SURE * one.standard_error for one in found.values()):
        return []
    loops_us = [us for one in found.values() for us in one.set_loop_us]
    listed = ", ".join(f"{modes[cell]} {max(one.elasticity, 0.0):.2f}" for cell, one in _steepest_first(found))
    return [
        f"where the host's loop takes 1 % longer, a pass over the sequence takes so many per cent longer: {listed};"
        f" it took {min(loops_us):.0f} to {max(loops_us):.0f} us here (means of sets), and a faster or slower host has other speed-ups"
    ]


def _steepest_first(found: dict[str, HostFollowing]) -> list[tuple[str, HostFollowing]]:
    return sorted(found.items(), key=lambda item: -item[1].elasticity)
