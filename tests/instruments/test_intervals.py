"""Intervals against the plain way: counting the points of a grid."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from stages.instruments.intervals import Interval, clipped, length, minus, union

GRID = range(24)
_INTERVALS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4)).map(lambda pair: (float(pair[0]), float(sum(pair)))), max_size=8)


def cells(intervals: list[Interval]) -> set[int]:
    """Unit cells that the intervals cover."""
    return {cell for cell in GRID for begin, end in intervals if begin <= cell and cell + 1 <= end}


def is_disjoint_and_sorted(intervals: list[Interval]) -> bool:
    return all(one[1] < two[0] for one, two in pairwise(intervals))


@given(_INTERVALS)
def test_union_covers_the_same_cells_without_overlap(intervals: list[Interval]) -> None:
    merged = union(intervals)
    assert cells(merged) == cells(intervals)
    assert is_disjoint_and_sorted(merged)
    assert length(merged) == len(cells(intervals))


@given(_INTERVALS, _INTERVALS)
def test_minus_leaves_what_no_hole_covers(intervals: list[Interval], holes: list[Interval]) -> None:
    left = minus(union(intervals), union(holes))
    assert cells(left) == cells(intervals) - cells(holes)
    assert length(left) == len(cells(left))


@given(_INTERVALS, st.integers(0, 20), st.integers(1, 4))
def test_clipped_keeps_what_is_inside_the_window(intervals: list[Interval], begin: int, size: int) -> None:
    window = (float(begin), float(begin + size))
    assert cells(clipped(union(intervals), window)) == cells(intervals) & cells([window])


@given(_INTERVALS)
def test_parts_of_a_window_sum_to_it(intervals: list[Interval]) -> None:
    window = (0.0, 24.0)
    busy = clipped(union(intervals), window)
    assert length(busy) + length(minus([window], busy)) == 24.0
