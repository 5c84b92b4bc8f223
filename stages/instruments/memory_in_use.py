"""Bytes that this process holds now, cheap enough to be read along a run."""

from __future__ import annotations

import resource
from pathlib import Path

import torch

STATM = Path("/proc/self/statm")


def present_bytes() -> int:
    """Bytes reserved by torch's CUDA allocator; on a CPU the resident set (0 where /proc does not tell)."""
    if torch.cuda.is_available():
        return int(torch.cuda.memory_stats_as_nested_dict()["reserved_bytes"]["all"]["current"])  # a tenth of memory_reserved's time
    try:
        return int(STATM.read_text(encoding="utf-8").split()[1]) * resource.getpagesize()
    except (OSError, IndexError, ValueError):
        return 0
