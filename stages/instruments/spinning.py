# mypy: disable-error-code="import-not-found, untyped-decorator, no-untyped-def, no-untyped-call"
"""A kernel that keeps the device busy for a known time, by the device's own clock (PTX %globaltimer, nanoseconds).

Needs Triton and a CUDA device.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor
from triton.language.extra.cuda import globaltimer


def spin(duration_us: int, spun_ns: Tensor) -> None:
    """Launch one program that spins for `duration_us` and writes the time that it did spin, ns, into `spun_ns` [1] (int64)."""
    spin_until[(1,)](spun_ns, duration_us * 1000, num_warps=1)


@triton.jit
def spin_until(spun_ns, duration_ns):
    """Read the clock until the duration has passed."""
    begin = globaltimer()
    now = begin
    while now - begin < duration_ns:
        now = globaltimer()
    tl.store(spun_ns, now - begin)
