"""How a cell's time goes with the speed of the host, from the loop of Python that was read beside it.

An elasticity: a step of elasticity 1 takes 5 % longer where the loop does, one of 0 does not notice. It is the slope of the
logarithm of a turn's time against that of its loop inside one run (least squares). Its error is that of independent turns or
of sets, whichever is larger (turns of one set share an offset; K.-Y. Liang and S. L. Zeger, 1986). Readings have noise of
their own, which would make the slope too small: both are divided by the readings' reliability, from their two halves (C.
Spearman and W. Brown, 1910). Only on a GPU, where one thread launches the steps, and from enough turns.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

import numpy as np
from scipy import stats

from stages.analysis import rotations as turns
from stages.analysis.rotations import Turn, Values
from stages.analysis.statistics import CONFIDENCE
from stages.core.records.following import HostFollowing
from stages.core.records.steps import Rotations

LEAST_TURNS = 12
LEAST_SETS = 2


def by_point(rotations: Rotations, objections: Collection[str]) -> dict[str, dict[str, HostFollowing]]:
    """`following` at every shape and for the sequence, of the cells that have times in the contrasts."""
    found = {point: following(rotations, point) for point in [*turns.shapes(rotations), turns.SEQUENCE]}
    return {
        point: {cell: one for cell, one in cells.items() if cell not in objections and not turns.is_twin(cell)}
        for point, cells in found.items()
    }


def following(rotations: Rotations, point: str) -> dict[str, HostFollowing]:
    """By cell, at a shape or for the sequence; without cells of which too little is known to say."""
    if rotations.device != "cuda":
        return {}
    times, loops, *halves = turns.values_at(rotations, point), *(turns.loops_at(rotations, point, half) for half in (None, 0, 1))
    cells = sorted({cell for found in times.values() for cell in found})
    found = {cell: _fit([_logs(values, times, cell) for values in (times, loops, *halves)], turns.set_means(loops, cell)) for cell in cells}
    return {cell: one for cell, one in found.items() if one}


def _logs(values: Values, times: Values, cell: str) -> dict[Turn, float]:
    """Of a cell in the turns in which it was timed; shorter where one has no reading."""
    return {turn: math.log(values[turn][cell]) for turn in times if cell in times[turn] and cell in values.get(turn, {})}


def _fit(logs: list[dict[Turn, float]], set_loop_us: list[float]) -> HostFollowing | None:
    """From times, loops, and both halves of the loops; None with few turns or sets, or where the loop's changes are noise."""
    own = list(logs[0])
    if len(own) < LEAST_TURNS or len({turn.set_index for turn in own}) < LEAST_SETS or any(len(one) < len(own) for one in logs):
        return None
    times, loops, *halves = (np.array([one[turn] for turn in own]) for one in logs)
    reliability = _reliability(*halves)
    if reliability <= 0:
        return None
    fit, centred = stats.linregress(loops, times), loops - loops.mean()
    scores = centred * (times - fit.intercept - fit.slope * loops)
    error = max(float(fit.stderr), _clustered(scores, [turn.set_index for turn in own]) / float(centred @ centred))
    return HostFollowing(
        elasticity=float(fit.slope) / reliability,
        standard_error=error / reliability,
        reliability=reliability,
        num_turns=len(own),
        set_loop_us=set_loop_us,
    )


def _reliability(first: np.ndarray, second: np.ndarray) -> float:
    """Of the mean of two halves, from their correlation; 0 where one never changes."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    correlation = float(np.corrcoef(first, second)[0, 1])
    return 2 * correlation / (1 + correlation) if correlation > 0 else 0.0


def _clustered(scores: np.ndarray, set_indices: list[int]) -> float:
    """Root of the sum of the squared sums of each set, for few sets."""
    sets, index = np.unique(set_indices, return_inverse=True)
    sums = np.bincount(index, weights=scores)
    return math.sqrt(float(sums @ sums) * len(sets) / (len(sets) - 1))


def sentence(found: Mapping[str, HostFollowing], modes: Mapping[str, str]) -> list[str]:
    """How modes follow the host over the sequence, steepest first; empty where none does for sure, corrected for their number.

    `found`: by cell, for the sequence. `modes`: cell -> mode.
    """
    if not any(_is_sure(one, len(found)) for one in found.values()):
        return []
    loops_us = [us for one in found.values() for us in one.set_loop_us]
    steepest_first = sorted(found.items(), key=lambda item: -item[1].elasticity)
    listed = ", ".join(f"{modes[cell]} {one.elasticity:.2f} ± {one.standard_error:.2f}" for cell, one in steepest_first)
    return [
        f"where the host's loop takes 1 % longer, a pass over the sequence takes so many per cent longer (± standard error): {listed};"
        f" it took {min(loops_us):.0f} to {max(loops_us):.0f} us here (means of sets), and a faster or slower host has other speed-ups"
    ]


def _is_sure(one: HostFollowing, num_cells: int) -> bool:
    share = (1 - CONFIDENCE) / (2 * num_cells)
    return one.elasticity > float(stats.t.ppf(1 - share, one.num_turns - 2)) * one.standard_error
