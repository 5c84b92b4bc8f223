"""What the device does at most: bytes/s of a large copy, operations/s of a large matrix product, and its L2 size.

Best of several runs, each timed by device events around one call that lasts milliseconds: a ceiling is what the
device has been seen to do, not its data sheet (Williams, Waterman, Patterson, 2009).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from stages.core.records.steps import Ceilings
from stages.instruments.clocks import device_us
from stages.workers.service import Service

COPY_BYTES = 1 << 30
LEAST_L2_MULTIPLE = 4
MATRIX_SIZE = 8192
NUM_RUNS = 10
MEMORY_SHARE = 8  # of the free memory, one in this many
NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16"}


def measure_ceilings(service: Service) -> dict[str, Any] | None:
    """The `Ceilings` document in the service's own precision; None on a CPU, where its caches decide.

    Also None where too little memory is free for a copy that the L2 cannot hold.
    """
    if service.device != "cuda":
        return None
    dtype = service.keys[0].dtype
    l2_bytes = int(torch.cuda.get_device_properties(0).L2_cache_size)
    copied_bytes = min(COPY_BYTES, torch.cuda.mem_get_info()[0] // MEMORY_SHARE)
    if copied_bytes < LEAST_L2_MULTIPLE * l2_bytes:
        return None
    size = MATRIX_SIZE if dtype == torch.bfloat16 else MATRIX_SIZE // 2
    found = Ceilings(
        bandwidth_bytes_per_s=bandwidth_bytes_per_s(copied_bytes, _device_s),
        operations_per_s=operations_per_s(size, dtype, _device_s),
        l2_bytes=l2_bytes,
        precision=NAMES.get(dtype, str(dtype)),
        copied_bytes=copied_bytes,
        matrix_size=size,
    )
    torch.cuda.empty_cache()  # the buffers must not count as the cell's own
    return found.model_dump()


def bandwidth_bytes_per_s(copied_bytes: int, timed_s: Callable[[Callable[[], Any]], float], device: str = "cuda") -> float:
    """Bytes read plus bytes written per second by a copy of `copied_bytes`; `timed_s` gives a call's seconds."""
    source = torch.ones(copied_bytes // 4, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    return 2 * source.numel() * 4 / timed_s(lambda: target.copy_(source))


def operations_per_s(size: int, dtype: torch.dtype, timed_s: Callable[[Callable[[], Any]], float], device: str = "cuda") -> float:
    """Floating-point operations per second (a multiply-add is two) of a product of two square matrices."""
    left = torch.randn(size, size, device=device).to(dtype)
    right = torch.randn(size, size, device=device).to(dtype)
    product = torch.empty_like(left)
    return 2 * size**3 / timed_s(lambda: torch.mm(left, right, out=product))


def _device_s(call: Callable[[], Any]) -> float:
    """Least seconds of one call by device events, after two calls that warm it up."""
    for _ in range(2):
        call()
    return min(device_us(call) for _ in range(NUM_RUNS)) / 1e6
