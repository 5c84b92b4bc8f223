"""A set stops when its intervals are narrow, it has run long enough, and never without a target."""

from __future__ import annotations

import pytest

from stages.core.records.steps import Block
from stages.workers.stopping import enough, least_timed_s, widest


def blocks(num_rotations: int, noise: float, us: float = 10_000.0, calls: int = 20) -> list[Block]:
    """Eager drifts; the ratio of C to it alternates by `noise`."""
    found = []
    for rotation in range(num_rotations):
        eager = us * (1 + 0.1 * rotation)
        for cell, value in (("E", eager), ("C", eager / 2 * (1 + noise * (-1) ** rotation))):
            at = {"set_index": 0, "rotation_index": rotation, "order_index": 0, "shape": "decode/1"}
            found.append(Block(cell=cell, mode=cell, **at, wall_us=[value] * calls, device_us=[], pipelined_us=value))
    return found


def test_narrow_intervals_stop_the_set_though_both_cells_drift() -> None:
    assert widest(blocks(6, noise=0.0), "E") == pytest.approx(0.0, abs=1e-12)
    assert enough(blocks(6, noise=0.0), 6, target=0.002).startswith("target: every interval is within 0.00% after 6 rotations")


def test_wide_intervals_short_times_few_or_odd_rotations_and_no_target_go_on() -> None:
    assert enough(blocks(6, noise=0.05), 6, target=0.002) == ""
    assert enough(blocks(6, noise=0.0, us=100.0), 6, target=0.002) == ""
    assert enough(blocks(2, noise=0.0), 2, target=0.002) == ""
    assert enough(blocks(5, noise=0.0), 5, target=0.002) == ""
    assert enough(blocks(6, noise=0.0), 6, target=0.0) == ""


def test_set_without_the_reference_or_with_voided_blocks_only_has_no_narrow_interval() -> None:
    assert enough([block for block in blocks(6, noise=0.0) if block.cell == "C"], 6, target=0.1) == ""
    assert enough([block.model_copy(update={"voided": "compiled"}) for block in blocks(6, noise=0.0)], 6, target=0.1) == ""


def test_time_is_that_of_the_cell_with_the_least() -> None:
    assert least_timed_s(blocks(4, noise=0.0)) == pytest.approx(4 * 20 * 5_000e-6 * 1.15)
    assert least_timed_s([]) == 0.0
