"""What readings of the host's loop say (`stages.instruments.host_speed`): its usual time, and whether a processor was slow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stages.core.records.steps import Block

LARGEST_SLOWDOWN = 1.15
USUAL_SHARE = 0.1


def readings(blocks: Iterable[Block]) -> list[float]:
    """The loop before and after each block, us; none of blocks from before it was read."""
    return [us for block in blocks if block.conditions for us in block.conditions.host_loop_us]


def usual_us(found: Sequence[float]) -> float:
    """The loop where nothing slows it, us: the fastest tenth of the readings ends there, so that one odd reading decides nothing."""
    return sorted(found)[int(USUAL_SHARE * len(found))]


def num_slow(found: Sequence[float], usually_us: float) -> int:
    """How many took over `LARGEST_SLOWDOWN` times the usual time."""
    return sum(us > LARGEST_SLOWDOWN * usually_us for us in found)
