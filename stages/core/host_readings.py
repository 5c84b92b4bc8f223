"""What readings of the host's loop say (`stages.instruments.host_speed`): its usual time, and whether a processor was slow."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from stages.core.records.steps import Block

LARGEST_SLOWDOWN = 1.35
"""Between noise (15 to 20 % of the readings on a shared host lie above 1.15) and a processor at half its speed (1.6 and more)."""
USUAL_SHARE = 0.1
NUM_RECENT = 500
"""Readings of a process, or of a cell, that say what is usual now."""


def readings(blocks: Iterable[Block]) -> list[float]:
    """The loop before each block and after its calls, us; none of blocks from before it was read."""
    return [us for block in blocks if block.conditions for us in block.conditions.host_loop_us]


def usual_us(found: Collection[float]) -> float:
    """The loop where nothing slows it, us: the fastest tenth of the readings ends there, so that one odd reading decides nothing."""
    return sorted(found)[int(USUAL_SHARE * len(found))]


def is_slow(us: float, usually_us: float) -> bool:
    """Whether it took over `LARGEST_SLOWDOWN` times the usual time."""
    return us > LARGEST_SLOWDOWN * usually_us


def num_slow(found: Iterable[float], usually_us: float) -> int:
    """How many of them are slow."""
    return sum(is_slow(us, usually_us) for us in found)
