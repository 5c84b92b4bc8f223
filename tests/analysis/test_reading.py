"""Records of a study: each one is what its place says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from stages.analysis.reading import read_or_skipped
from stages.core import atomic
from stages.core.errors import UserError
from stages.core.records.correctness import CorrectnessRecord
from stages.core.records.steps import Block
from tests.core.test_records import RECORD

BLOCK: dict[str, Any] = {"cell": "E", "mode": "eager", "set_index": 0, "rotation_index": 0, "order_index": 0, "pipelined_us": 1.0}


@pytest.mark.parametrize("item", ["another", "eager"])
def test_record_of_another_item_is_one_line(item: str, tmp_path: Path) -> None:
    atomic.write_json(tmp_path / "correctness" / f"{item}.json", RECORD.model_dump(mode="json"))
    if item == RECORD.item:
        assert read_or_skipped(tmp_path, "correctness", item, CorrectnessRecord) == RECORD
        return
    with pytest.raises(
        UserError, match=rf"{item}.json: must be the record of correctness@{item}; got correctness@{RECORD.item}. Delete it"
    ):
        read_or_skipped(tmp_path, "correctness", item, CorrectnessRecord)


@pytest.mark.parametrize(
    ("shape", "wall_us"), [("decode", 1.0), ("decode/0", 1.0), ("decode/x", 1.0), ("draft/1", 1.0), ("decode/1", 0.0), ("decode/1", -1.0)]
)
def test_block_without_a_shape_or_a_time_is_refused(shape: str, wall_us: float) -> None:
    Block(**BLOCK, shape="prefill/64", wall_us=[0.5], device_us=[])
    with pytest.raises(ValidationError):
        Block(**BLOCK, shape=shape, wall_us=[wall_us], device_us=[])
