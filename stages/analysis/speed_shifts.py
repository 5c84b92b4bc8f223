"""A machine that shifts between two speeds: equal work in one cell that took very different times from turn to turn."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from stages.analysis import rotations as turns
from stages.core.records.answer import SpeedShift
from stages.core.records.steps import Rotations

LEAST_RATIO = 1.3


def speed_shift(rotations: Rotations) -> SpeedShift | None:
    """The cell and shape whose blocks lie furthest apart, where that is more than 30 %; from the medians of those that count."""
    found = sorted(_spreads(rotations), key=lambda shift: shift.most_us / shift.least_us)
    shifted = [one for one in found if one.most_us > LEAST_RATIO * one.least_us]
    return shifted[-1].model_copy(update={"num_shifted": len(shifted), "of": len(found)}) if shifted else None


def _spreads(rotations: Rotations) -> list[SpeedShift]:
    """Every cell and shape with more than one block, as if it alone had been timed."""
    medians: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for shape in turns.shapes(rotations):
        for block in turns.counted(rotations, shape):
            medians[block.cell, block.mode, shape].append(float(np.median(block.wall_us)))
    return [
        SpeedShift(mode=mode, point=shape, least_us=min(values), most_us=max(values), num_shifted=1, of=1)
        for (_, mode, shape), values in medians.items()
        if len(values) > 1
    ]
