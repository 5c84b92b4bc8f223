"""Naming the fastest of many cells, with intervals corrected for the number of comparisons.

The best of k modes is picked by the same data that judge it. So it is compared with each of the k - 1 others at
confidence 1 - 0.05 / (k - 1) (Bonferroni): the chance that any of these intervals misses is at most 5 %.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from stages.analysis import rotations as turns
from stages.analysis import statistics
from stages.core.records.steps import Rotations
from stages.core.records.winner import Winner


def winner(rotations: Rotations, point: str, usable: Collection[str]) -> Winner | None:
    """The fastest of the usable cells at a shape or for `sequence`; `mode` is `undecided` while others are not told apart.

    None with fewer than two cells, or where the fastest never met another in a rotation.
    """
    values = turns.values_at(rotations, point)
    modes = {cell.cell: cell.mode for cell in rotations.cells if cell.cell in usable and not turns.is_twin(cell.cell)}
    means = {cell: mean.value for cell in modes if (mean := turns.cell_mean(values, cell))}
    if len(means) < 2:
        return None
    best = _fastest(values, means)
    confidence = corrected(len(means) - 1)
    margin = turns.margin_at(rotations, values)
    ratios = {cell: turns.log_ratios_by_set(values, cell, best) for cell in means if cell != best}
    estimates = {cell: statistics.estimate(ratio, confidence) for cell, ratio in ratios.items() if ratio}
    tied = [modes[cell] for cell, found in estimates.items() if statistics.classify(found, margin) != "faster"]
    if not estimates:
        return None
    return Winner(
        mode="undecided" if tied else modes[best],
        fastest=modes[best],
        tied=tied,
        least_speedup=min(statistics.exponentiated(found).value for found in estimates.values()),
        num_compared=len(estimates),
        confidence=confidence,
    )


def _fastest(values: turns.Values, means: Mapping[str, float]) -> str:
    """By the rotations that all these cells have, since each may lack others; by what each has, where none has all."""
    shared = {turn: cells for turn, cells in values.items() if means.keys() <= cells.keys()}
    fair = {cell: mean.value for cell in means if (mean := turns.cell_mean(shared, cell))} or means
    return min(fair, key=lambda cell: fair[cell])


def corrected(num_comparisons: int) -> float:
    """Confidence of each of several intervals so that all of them hold together at 95 % (Bonferroni)."""
    assert num_comparisons >= 1, "there is something to compare with"
    return 1 - (1 - statistics.CONFIDENCE) / num_comparisons
