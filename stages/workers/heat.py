"""One heat of all cells over the step sequence; the fastest go on, in sets of fresh processes of their own.

Whoever picks the best of many by the numbers that judge them picks luck too. So the heat's numbers only choose; what is
said about those that go on comes from the sets after it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from stages.core.records.steps import Cell
from stages.workers.rotation import Set

NUM_ROTATIONS = 2  # one order and its reverse


def ranked(heat: Set) -> dict[str, float]:
    """Mean seconds of the sequence by cell, the fastest first; cells that broke and passes that do not count are left out."""
    passes: dict[str, list[float]] = defaultdict(list)
    for run in heat.sequences:
        if run.cell not in heat.failed and not run.voided:
            passes[run.cell].append(run.sequence_s)
    means = {cell: sum(found) / len(found) for cell, found in passes.items()}
    return dict(sorted(means.items(), key=lambda item: item[1]))


def after_heat(cells: list[Cell], means_s: Mapping[str, float], failed: Mapping[str, str], finalists: int) -> list[Cell]:
    """The cells with what the heat made of them: those that do not go on are `skipped` with their time, or `failed`."""
    return [cell.model_copy(update=_fate(cell, list(means_s), means_s, failed, finalists)) for cell in cells]


def _fate(cell: Cell, order: list[str], means_s: Mapping[str, float], failed: Mapping[str, str], finalists: int) -> dict[str, str]:
    first = cell.cell.removesuffix("#2")
    if cell.status != "ok" or first in order[:finalists]:
        return {}
    if first in failed:
        return {"status": "failed", "reason": failed[first]}
    if first not in means_s:
        return {"status": "skipped", "reason": "no pass of the heat counts"}
    last = order[:finalists][-1]
    place = f"number {order.index(first) + 1} of the heat: {means_s[first]:.4g} s for the sequence"
    return {"status": "skipped", "reason": f"{place}, {means_s[last]:.4g} s would have been enough"}
