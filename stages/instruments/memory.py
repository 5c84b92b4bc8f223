"""Bytes on the device, by what holds them."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import torch

LARGEST_SMALL_BYTES = 1 << 20
"""Of a request that torch's allocator serves from its small segments (`kSmallSize` of CUDACachingAllocator.cpp)."""


def allocated_bytes() -> int:
    """Bytes live in torch's CUDA allocator; 0 on a CPU, where it keeps no account."""
    return torch.cuda.memory_allocated() if torch.cuda.is_available() else 0


def peak_bytes() -> int:
    """Most bytes ever reserved by torch's CUDA allocator; the process's peak resident set on a CPU."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_reserved()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def reserved_bytes() -> int:
    """Bytes reserved now by torch's CUDA allocator; the process's peak resident set on a CPU."""
    return torch.cuda.memory_reserved() if torch.cuda.is_available() else peak_bytes()


def graph_pool_bytes() -> int:
    """Bytes of segments that belong to a private pool, which only captured graphs use; 0 on a CPU."""
    if not torch.cuda.is_available():
        return 0
    segments: list[dict[str, Any]] = torch.cuda.memory_snapshot()
    return sum(int(segment["total_size"]) for segment in segments if tuple(segment.get("segment_pool_id", (0, 0))) != (0, 0))


def free_block_bytes() -> list[int]:
    """Requests that together get every free block in the ordinary pool of torch's CUDA allocator, largest first; empty on a CPU.

    A block of a small segment is had in pieces: a request above 1 MiB is given memory from a large one.
    """
    if not torch.cuda.is_available():
        return []
    segments: list[dict[str, Any]] = torch.cuda.memory_snapshot()
    ordinary = [segment for segment in segments if tuple(segment.get("segment_pool_id", (0, 0))) == (0, 0)]
    pieces = [piece for segment in ordinary for piece in _free_pieces(segment)]
    return sorted(pieces, reverse=True)


def _free_pieces(segment: dict[str, Any]) -> list[int]:
    free = [int(block["size"]) for block in segment["blocks"] if block["state"] == "inactive"]
    if segment["segment_type"] != "small":
        return free
    return [
        size for block in free for size in ([LARGEST_SMALL_BYTES] * (block // LARGEST_SMALL_BYTES) + [block % LARGEST_SMALL_BYTES]) if size
    ]


def outside_allocator_bytes() -> int:
    """Device bytes in use that torch did not reserve: context, modules, graph executables; 0 on a CPU."""
    if not torch.cuda.is_available():
        return 0
    free, total = torch.cuda.mem_get_info()
    return max(0, total - free - torch.cuda.memory_reserved())


def resident_bytes() -> int:
    """The process's resident set now (Linux /proc; the peak where there is none)."""
    statm = Path("/proc/self/statm")
    return int(statm.read_text(encoding="ascii").split()[1]) * resource.getpagesize() if statm.is_file() else peak_bytes()


def sample(step: int) -> dict[str, int]:
    """A `MemorySample` document now."""
    on_device = torch.cuda.is_available()
    return {
        "step": step,
        "allocated_bytes": allocated_bytes(),
        "reserved_bytes": reserved_bytes() if on_device else resident_bytes(),
        "graph_pool_bytes": graph_pool_bytes(),
        "outside_allocator_bytes": outside_allocator_bytes(),
    }
