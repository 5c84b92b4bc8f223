"""Ceilings: counted bytes and operations over measured time; on a CPU there are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from stages.core.records.steps import Ceilings
from stages.workers.ceilings import bandwidth_bytes_per_s, measure_ceilings, operations_per_s
from tests.workers.conftest import MakeService


class Timer:
    """Says that every call took half a second."""

    def __init__(self) -> None:
        self.results: list[torch.Tensor] = []

    def __call__(self, call: Callable[[], Any]) -> float:
        self.results.append(call())
        return 0.5


def test_copy_counts_bytes_read_and_written() -> None:
    timer = Timer()
    assert bandwidth_bytes_per_s(4096, timer, device="cpu") == 2 * 4096 / 0.5
    assert timer.results[0].shape == (1024,)
    assert bool((timer.results[0] == 1).all())


def test_product_counts_two_operations_a_multiply_add() -> None:
    timer = Timer()
    assert operations_per_s(16, torch.bfloat16, timer, device="cpu") == 2 * 16**3 / 0.5
    assert (timer.results[0].shape, timer.results[0].dtype) == ((16, 16), torch.bfloat16)


def test_a_cpu_has_no_ceilings(make_service: MakeService) -> None:
    assert measure_ceilings(make_service("tiny")) is None


@pytest.mark.gpu
def test_ceilings_of_a_gpu_are_those_of_a_gpu(make_service: MakeService) -> None:
    service = make_service("tiny")
    service.device = "cuda"
    found = measure_ceilings(service)
    assert found is not None
    ceilings = Ceilings(**found)
    assert ceilings.l2_bytes > 1 << 20
    assert 5e10 < ceilings.bandwidth_bytes_per_s < 2e13
    assert 1e12 < ceilings.operations_per_s < 5e15
