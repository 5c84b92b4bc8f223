"""Concurrency checked by allocating it: on a GPU, up to a limit at which the cache binds."""

from __future__ import annotations

import gc

import pytest
import torch

from stages.core.build import build
from stages.instruments import memory
from stages.workers.allocating import allocate_sequences, most
from stages.workers.measuring_memory import measure_memory
from stages.workers.service import Service
from tests.workers.conftest import MakeService, node, plan_for

SLOT_MIB = 8


def test_cpu_is_not_checked_and_says_so(make_service: MakeService) -> None:
    found = allocate_sequences(make_service("tiny"), 10**9, 7)
    assert found["checked_sequences"] is None
    assert "CPU" in found["check"]


@pytest.mark.parametrize(
    ("expected", "really", "tries"), [(30, 30, 1), (30, 27, 7), (30, 0, 6), (0, 0, 0), (1, 1, 1), (10**7, 10**7 // 3, 9)]
)
def test_most_that_fit_are_found_in_few_tries(expected: int, really: int, tries: int) -> None:
    asked: list[int] = []

    def fits(count: int) -> bool:
        asked.append(count)
        return count <= really

    found = most(expected, fits)
    assert really - max(0, expected // 200) <= found <= really
    assert len(asked) <= tries


@pytest.fixture
def service() -> Service:
    """Four slots of 8 MiB, and nothing that an earlier test left to the allocator or its peak."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    changes = {"max_batch": 4, "capture_sizes": [4], "context_tokens": 16384, "num_kv_heads": 2, "head_size": 32, "hidden_size": 64}
    model = build({**node("model", "tiny"), **changes}, "model")
    made = Service(model.load("cuda", "fp32"), model, build(node("mode", "eager"), "mode"), plan_for([4], [32], 16384), "cuda", "fp32")
    assert made.keys[0][0].numel() * 4 * 2 == SLOT_MIB << 20
    for shape in made.shapes():
        made.run(shape)
    made.synchronize()
    return made


@pytest.mark.gpu
@pytest.mark.parametrize("sequences", [30, 2])
def test_computed_number_of_sequences_can_be_allocated(service: Service, sequences: int) -> None:
    empty = measure_memory(service, None)
    outside, slots = memory.outside_allocator_bytes(), 4 * SLOT_MIB << 20
    limit = outside + empty["peak_bytes"] - slots + (sequences * SLOT_MIB << 20) + (1 << 20)
    expected = measure_memory(service, limit)["max_sequences"]
    assert expected == sequences
    found = allocate_sequences(service, limit, expected)
    assert sequences - 3 <= found["checked_sequences"] <= sequences, found  # the allocator takes segments of 20 MiB
    assert found["check"].startswith(f"of {sequences} computed sequences ")
    torch.empty(1 << 30, dtype=torch.uint8, device="cuda")  # the limit is lifted again


@pytest.mark.gpu
def test_more_than_fit_are_not_said_to_fit(service: Service) -> None:
    limit = memory.outside_allocator_bytes() + measure_memory(service, None)["peak_bytes"]
    assert allocate_sequences(service, limit, 40)["checked_sequences"] <= 6  # the four there are, and what a segment had left
