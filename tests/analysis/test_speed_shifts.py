"""A machine that shifts between two speeds is told from one that does not, by the blocks of one cell at one shape."""

from __future__ import annotations

import pytest

from stages.analysis.speed_shifts import speed_shift
from stages.core.records.answer import SpeedShift
from stages.core.records.steps import Block, Cell, Rotations


def timed(**us: list[float]) -> Rotations:
    """One block a value: `compile_2=[...]` is compile at decode/2."""
    blocks = []
    for name, values in us.items():
        mode, _, size = name.rpartition("_")
        for turn, value in enumerate(values):
            at = {"set_index": 0, "rotation_index": turn, "order_index": 0}
            blocks.append(Block(cell=mode, mode=mode, shape=f"decode/{size}", wall_us=[value], device_us=[], pipelined_us=value, **at))
    cells = [Cell(cell=mode, mode=mode, status="ok") for mode in sorted({block.mode for block in blocks})]
    sizes = {"num_sets": 1, "decode_context_tokens": 8, "sequence_steps": 0, "sequence_steps_in_trace": 0}
    return Rotations(factorial="f", cells=cells, blocks=blocks, sequences=[], device="cpu", **sizes)


def test_the_largest_change_is_named_with_how_many_there_are() -> None:
    found = speed_shift(timed(eager_1=[100, 130], eager_2=[100, 140], compile_1=[50, 50, 95], compile_2=[60], dynamo_1=[70, 71]))
    assert found == SpeedShift(mode="compile", point="decode/1", least_us=50, most_us=95, num_shifted=2, of=4)


@pytest.mark.parametrize("us", [[100, 130], [100], [100, 100]])
def test_a_steady_machine_has_none(us: list[float]) -> None:
    assert speed_shift(timed(eager_1=us)) is None


def test_a_block_that_does_not_count_is_no_change_of_speed() -> None:
    rotations = timed(eager_1=[100, 101, 400])
    voided = rotations.blocks[-1].model_copy(update={"voided": "compiled meanwhile"})
    assert speed_shift(rotations.model_copy(update={"blocks": [*rotations.blocks[:-1], voided]})) is None
