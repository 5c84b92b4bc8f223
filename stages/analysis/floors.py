"""The least time a step can take on a device: the roofline floor (Williams, Waterman, Patterson, 2009)."""

from __future__ import annotations

from typing import NamedTuple

from stages.core.records.answer import Floor

LEAST_CACHE_MULTIPLE = 2.0  # below it the L2 serves reads


class Ceilings(NamedTuple):
    """What the device can do at most, measured on it: bytes/s from memory, floating-point operations/s, and its L2 size."""

    bandwidth_bytes_per_s: float
    operations_per_s: float
    l2_bytes: float


class Work(NamedTuple):
    """What one step must do at least."""

    num_bytes: float
    num_operations: float


def floor_us(work: Work, ceilings: Ceilings) -> float:
    """max(bytes / bandwidth, operations / rate) in us."""
    return 1e6 * max(work.num_bytes / ceilings.bandwidth_bytes_per_s, work.num_operations / ceilings.operations_per_s)


def floor(work: Work | None, ceilings: Ceilings | None, measured_us: float | None) -> Floor:
    """The floor of one shape and how far the measured time is above it; a reason instead where there is none."""
    if work is None:
        return Floor(floor_us=None, ratio=None, reason="not applicable: the model states no bytes for this shape")
    if ceilings is None:
        return Floor(floor_us=None, ratio=None, reason="not applicable: no bandwidth and rate were measured on this device")
    if work.num_bytes < LEAST_CACHE_MULTIPLE * ceilings.l2_bytes:
        reason = f"not applicable: the step reads {work.num_bytes / 1e6:.1f} MB, under twice the L2 ({ceilings.l2_bytes / 1e6:.1f} MB)"
        return Floor(floor_us=None, ratio=None, reason=reason)
    least = floor_us(work, ceilings)
    return Floor(floor_us=least, ratio=None if measured_us is None else measured_us / least)
