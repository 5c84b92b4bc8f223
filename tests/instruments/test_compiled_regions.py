"""Operators and kernels inside and outside compiled functions, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from stages.instruments.compiled_regions import share_outside

WINDOW = [(0.0, 100.0)]


def event(name: str, category: str, ts: float, dur: float, correlation: int | None = None) -> dict[str, Any]:
    return {"ph": "X", "name": name, "cat": category, "ts": ts, "dur": dur, "args": {"correlation": correlation}}


REGION = event("Torch-Compiled Region: 0/0", "cpu_op", 10, 40)


def test_operators_outside_are_a_share_of_themselves_and_the_regions() -> None:
    outer, nested, outside = event("mm", "cpu_op", 10, 30), event("inner", "cpu_op", 15, 5), event("sum", "cpu_op", 60, 10)
    assert share_outside([REGION], [outer, nested, outside], WINDOW, "cpu") == pytest.approx(10 / 50)


def test_kernel_belongs_to_the_region_that_launched_it_even_when_it_runs_later() -> None:
    launches = [event("cuLaunchKernel", "cuda_driver", 20, 1, 7), event("cudaLaunchKernel", "cuda_runtime", 70, 1, 8)]
    kernels = [event("triton", "kernel", 80, 30, 7), event("add", "kernel", 110, 10, 8)]
    assert share_outside([REGION, *launches], kernels, WINDOW, "cuda") == pytest.approx(10 / 40)


def test_region_of_another_window_does_not_count() -> None:
    elsewhere = event("Torch-Compiled Region: 0/1", "cpu_op", 200, 50)
    assert share_outside([elsewhere], [event("mm", "cpu_op", 10, 30)], WINDOW, "cpu") == 1.0


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_share_is_not_known_without_work_or_without_any_region(device: str) -> None:
    assert share_outside([REGION], [], WINDOW, device) is None
    assert share_outside([], [event("mm", "cpu_op", 10, 30)], WINDOW, device) is None
