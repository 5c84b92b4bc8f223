"""Which requests get every free block of the allocator."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from stages.instruments import memory

MIB = 1 << 20


def segment(kind: str, *blocks: tuple[int, str], pool: tuple[int, int] = (0, 0)) -> dict[str, Any]:
    listed = [{"size": size, "state": state} for size, state in blocks]
    return {"segment_type": kind, "segment_pool_id": pool, "blocks": listed}


def test_free_blocks_of_small_segments_are_asked_for_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = [
        segment("small", (512, "active_allocated"), (MIB + 512, "inactive"), (1024, "inactive")),
        segment("large", (20 * MIB, "inactive"), (2 * MIB, "active_pending_free")),
        segment("large", (8 * MIB, "inactive"), pool=(0, 1)),
    ]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: snapshot)
    assert memory.free_block_bytes() == [20 * MIB, MIB, 1024, 512]


def test_a_cpu_has_no_such_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert memory.free_block_bytes() == []


@pytest.mark.gpu
def test_filling_them_overwrites_a_tensor_that_was_freed() -> None:
    neighbour, freed = torch.zeros(300, device="cuda"), torch.ones(300, device="cuda")
    place = freed.data_ptr()
    del freed
    taken = [torch.empty(size // 4, device="cuda") for size in memory.free_block_bytes()]
    assert any(one.data_ptr() <= place < one.data_ptr() + one.nbytes for one in taken)
    assert len(neighbour) == 300
