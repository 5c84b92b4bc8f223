"""The clocks that time a call: the host's around a synchronised call, and device events around one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

Call = Callable[[], Any]


def wall_us(call: Call, synchronize: Call) -> float:
    """Host time of one call and the wait for the device, us."""
    began = time.perf_counter_ns()
    call()
    synchronize()
    return (time.perf_counter_ns() - began) / 1e3


def device_us(call: Call) -> float:
    """Time between two CUDA events around one call, us."""
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    call()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) * 1e3
