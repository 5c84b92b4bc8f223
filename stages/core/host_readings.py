"""What readings of the host's loop say (`stages.instruments.host_speed`): its usual time, and whether a processor was slow."""

from __future__ import annotations

from collections.abc import Sequence

LARGEST_SLOWDOWN = 1.15
USUAL_SHARE = 0.1


def usual_us(readings: Sequence[float]) -> float:
    """The loop where nothing slows it, us: the fastest tenth of the readings ends there, so that one odd reading decides nothing."""
    return sorted(readings)[int(USUAL_SHARE * len(readings))]


def num_slow(readings: Sequence[float], usually_us: float) -> int:
    """How many took over `LARGEST_SLOWDOWN` times the usual time."""
    return sum(us > LARGEST_SLOWDOWN * usually_us for us in readings)
