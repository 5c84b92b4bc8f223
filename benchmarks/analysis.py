"""Time and memory of the steady-state analysis at 10^4, 10^5 and 10^6 timed steps: it must grow linearly.

python benchmarks/analysis.py
"""

from __future__ import annotations

import resource
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from stages.analysis import conditions, winners
from stages.analysis import rotations as turns
from stages.core.records.steps import Block, Cell, Conditions, Rotations

CELLS = ("E", "C", "R", "CR", "dynamo", "E#2", "CR#2")
SHAPES = (*(f"decode/{size}" for size in (1, 2, 4, 8, 16, 32, 64)), "prefill/512", "prefill/2048")
NUM_SETS = 6
CALLS = 40  # on each of two clocks


def study(num_steps: int) -> Rotations:
    """A factorial of about this many timed steps."""
    rng = np.random.default_rng(0)
    num_rotations = max(1, num_steps // (2 * CALLS * len(CELLS) * len(SHAPES) * NUM_SETS))
    good = Conditions(sm_clock_mhz=1900, max_sm_clock_mhz=1980, event_us={"thermal": 0.0}, queue_share=0.0, other_growth_bytes=0)
    blocks = [
        Block(
            cell=cell,
            mode=cell,
            shape=shape,
            set_index=one,
            rotation_index=rotation,
            order_index=order,
            wall_us=(samples := (1000 + rng.normal(0, 5, CALLS)).tolist()),
            device_us=samples,
            pipelined_us=900.0,
            conditions=good,
        )
        for one in range(NUM_SETS)
        for rotation in range(num_rotations)
        for shape in SHAPES
        for order, cell in enumerate(CELLS)
    ]
    cells = [Cell(cell=cell, mode=cell, status="ok") for cell in CELLS]
    sizes = {"num_sets": NUM_SETS, "decode_context_tokens": 8, "sequence_steps": 0, "sequence_steps_in_trace": 0}
    return Rotations(factorial="benchmark", cells=cells, blocks=blocks, sequences=[], device="cuda", **sizes)


def analyse(rotations: Rotations) -> None:
    """Times, contrasts, A/A pairs, winners and conditions of every shape."""
    usable = [cell for cell in CELLS if not turns.is_twin(cell)]
    for shape in turns.shapes(rotations):
        for cell in usable[1:]:
            turns.shape_times(rotations, cell, shape)
            turns.log_ratio(turns.values_at(rotations, shape), "E", cell)
        winners.winner(rotations, shape, usable)
    turns.twins(rotations)
    conditions.sentences(rotations)


def main() -> None:
    """One line a size."""
    for num_steps in (10**4, 10**5, 10**6):
        rotations = study(num_steps)
        began_s = time.perf_counter()
        analyse(rotations)
        peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        steps = len(rotations.blocks) * 2 * CALLS
        sys.stdout.write(f"{steps:>9,} steps  {time.perf_counter() - began_s:6.2f} s  {peak_mb:6.0f} MB\n")


if __name__ == "__main__":
    main()
