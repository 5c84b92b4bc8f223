"""Time and memory of reading and analysing the record of one factorial at 10^4, 10^5 and 10^6 timed steps: it must grow linearly.

python benchmarks/analysis.py [--steps 10000 100000 1000000]
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from stages.analysis import conditions, host_following, winners
from stages.analysis import rotations as turns
from stages.analysis.contrasts import Point, contrasts
from stages.analysis.speed_shifts import speed_shift
from stages.core.records import base
from stages.core.records.base import Hashes
from stages.core.records.steps import Block, Cell, Conditions, Rotations, SequenceRun, SteadyStateRecord

CELLS = ("E", "C", "R", "CR", "dynamo", "E#2", "CR#2")
SHAPES = (*(f"decode/{size}" for size in (1, 2, 4, 8, 16, 32, 64)), "prefill/512", "prefill/2048")
NUM_SETS = 6
CALLS = 40  # of a block at most, on each of two clocks


def study(num_steps: int) -> Rotations:
    """A factorial of about this many timed steps."""
    rng = np.random.default_rng(0)
    per_rotation = len(CELLS) * len(SHAPES) * NUM_SETS
    calls = max(1, min(CALLS, num_steps // (2 * per_rotation)))
    num_rotations = max(1, num_steps // (2 * calls * per_rotation))
    good = Conditions(
        sm_clock_mhz=1900,
        max_sm_clock_mhz=1980,
        event_us={"thermal": 0.0},
        queue_share=0.0,
        other_growth_bytes=0,
    )
    turn_of_all = [(one, rotation) for one in range(NUM_SETS) for rotation in range(num_rotations)]
    blocks = [
        Block(
            cell=cell,
            mode=cell,
            shape=shape,
            set_index=one,
            rotation_index=rotation,
            order_index=order,
            wall_us=(samples := (1000 + rng.normal(0, 5, calls)).tolist()),
            device_us=samples,
            pipelined_us=900.0,
            conditions=good.model_copy(update={"host_loop_us": (30 + rng.exponential(1, 1 + 2 * calls)).tolist()}),
        )
        for one, rotation in turn_of_all
        for shape in SHAPES
        for order, cell in enumerate(CELLS)
    ]
    sequences = [
        SequenceRun(
            cell=cell,
            mode=cell,
            set_index=one,
            rotation_index=rotation,
            sequence_s=1.0,
            num_steps=80,
            num_decode_steps=70,
            host_loop_us=(30 + rng.exponential(1, 81)).tolist(),
        )
        for one, rotation in turn_of_all
        for cell in CELLS
    ]
    cells = [Cell(cell=cell, mode=cell, status="ok") for cell in CELLS]
    sizes = {"num_sets": NUM_SETS, "decode_context_tokens": 8, "sequence_steps": 80, "sequence_steps_in_trace": 8000}
    return Rotations(factorial="benchmark", cells=cells, blocks=blocks, sequences=sequences, device="cuda", **sizes)


def write(rotations: Rotations, file: Path) -> int:
    """Write the record as the stage does; the number of timed steps in it."""
    ends = {"started_at": "2026-01-01T00:00:00+00:00", "ended_at": "2026-01-01T00:00:00+00:00", "command": "benchmark"}
    hashes = Hashes(config="", environment="", code="")
    base.write(file, SteadyStateRecord(stage="steady_state", item="benchmark", status="ok", hashes=hashes, data=rotations, **ends))
    return sum(len(block.wall_us) + len(block.device_us) for block in rotations.blocks)


def analyse(file: Path) -> None:
    """Read the record; times, contrasts, A/A pairs, winners, conditions, how the host is followed and speed shifts of every shape."""
    rotations = base.read(file, SteadyStateRecord).data
    assert rotations, "the record holds data"
    usable = [cell for cell in CELLS if not turns.is_twin(cell)]
    shapes = turns.shapes(rotations)
    for shape in shapes:
        for cell in usable[1:]:
            turns.shape_times(rotations, cell, shape)
            turns.log_ratio(turns.values_at(rotations, shape), "E", cell)
    for point in [*shapes, turns.SEQUENCE]:
        contrasts(Point(point, turns.values_at(rotations, point), {}, {}))
        winners.winner(rotations, point, usable)
    turns.twins(rotations)
    conditions.sentences(rotations)
    host_following.by_point(rotations, [])
    speed_shift(rotations)


def measured(num_steps: int, file: Path) -> str:
    """One line: steps, seconds, the most memory that this process had until now."""
    num_written = write(study(num_steps), file)
    began_s = time.perf_counter()
    analyse(file)
    took_s = time.perf_counter() - began_s
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"{num_written:>9,} steps  {took_s:6.2f} s  {1e6 * took_s / num_written:5.1f} us a step  {peak_mb:6.0f} MB\n"


def main() -> None:
    """One line a size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    with tempfile.TemporaryDirectory() as folder:
        for num_steps in parser.parse_args().steps:
            sys.stdout.write(measured(num_steps, Path(folder) / f"{num_steps}.json"))


if __name__ == "__main__":
    main()
