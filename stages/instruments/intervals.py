"""Sets of time intervals, as sorted lists of disjoint (begin, end)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Interval = tuple[float, float]


def of_event(event: Mapping[str, Any]) -> Interval:
    """The time of a complete event of a Chrome trace (`ts` and `dur`, us)."""
    begin = float(event["ts"])
    return begin, begin + float(event["dur"])


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Overlapping ones merged, sorted."""
    merged: list[Interval] = []
    for begin, end in sorted(intervals):
        if merged and begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((begin, end))
    return merged


def clipped(intervals: Iterable[Interval], window: Interval) -> list[Interval]:
    """The parts inside a window."""
    inside = ((max(begin, window[0]), min(end, window[1])) for begin, end in intervals)
    return [(begin, end) for begin, end in inside if begin < end]


def minus(intervals: list[Interval], holes: list[Interval]) -> list[Interval]:
    """The parts of `intervals` outside `holes` (both disjoint and sorted)."""
    left: list[Interval] = []
    for begin, end in intervals:
        for hole_begin, hole_end in holes:
            if hole_end <= begin or hole_begin >= end:
                continue
            if hole_begin > begin:
                left.append((begin, hole_begin))
            begin = max(begin, hole_end)
        if begin < end:
            left.append((begin, end))
    return left


def length(intervals: Iterable[Interval]) -> float:
    """Total length of disjoint intervals."""
    return sum(end - begin for begin, end in intervals)
