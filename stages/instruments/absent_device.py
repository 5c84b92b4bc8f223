"""torch's stand-in for a CUDA device, with which a build for CUDA compiles where there is none (private; 2.11 and 2.13).

torch 2.11 keeps it with the thread that traces first: when that thread has ended, the next trace in another one reads
freed memory and the process dies (pytorch#178950; later releases keep it for the process).
"""

from __future__ import annotations

import torch


def own_stand_in() -> None:
    """Let this thread own the stand-in, before a thread that ends earlier traces anything. Nothing to do where there is a device."""
    ensure = getattr(torch._C, "_ensureCUDADeviceGuardSet", None)
    if ensure is not None and not torch.cuda.is_available():
        ensure()
