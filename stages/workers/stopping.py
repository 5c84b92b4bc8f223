"""When a set has enough rotations: an interval target, a floor on accumulated time, and a cap; the reason is recorded."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from stages.core.records.steps import Block

LEAST_TIMED_S = 0.5  # nvbench's floor a measurement
LEAST_ROTATIONS = 4
Z = 1.96


def enough(blocks: Sequence[Block], num_rotations: int, target: float, reference: str = "E") -> str:
    """Why a set may stop after these rotations, or an empty string. `target`: half-width of a ratio's interval inside the set.

    Checked after an even number of rotations, so that each order was also run backwards. 0 as target never stops.
    """
    if target <= 0 or num_rotations < LEAST_ROTATIONS or num_rotations % 2:
        return ""
    timed_s = least_timed_s(blocks)
    width = widest(blocks, reference)
    if timed_s < LEAST_TIMED_S or width > target:
        return ""
    return f"target: every interval is within {width:.2%} after {num_rotations} rotations and {timed_s:.2g} s a cell and shape"


def least_timed_s(blocks: Sequence[Block]) -> float:
    """Accumulated time of timed calls of the cell and shape that has the least, s."""
    total_us: dict[tuple[str, str], float] = defaultdict(float)
    for block in blocks:
        total_us[block.cell, block.shape] += 0.0 if block.voided else sum(block.wall_us)
    return min(total_us.values(), default=0.0) / 1e6


def widest(blocks: Sequence[Block], reference: str) -> float:
    """Largest half-width, over cells and shapes, of the mean log-ratio to the reference over rotations; infinite without one."""
    medians = {
        (block.shape, block.cell, block.rotation_index): math.log(float(np.median(block.wall_us))) for block in blocks if not block.voided
    }
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (shape, cell, rotation), value in medians.items():
        base = medians.get((shape, reference, rotation))
        if cell != reference and base is not None:
            ratios[shape, cell].append(value - base)
    widths = [Z * float(np.std(found, ddof=1)) / math.sqrt(len(found)) if len(found) > 1 else math.inf for found in ratios.values()]
    return max(widths, default=math.inf)
