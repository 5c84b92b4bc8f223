"""The exact choice of sizes, against trying every subset."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.analysis.capture_sizes import best_sizes, decode_s, fewest_close_sizes, vllm_option

STEPS = st.dictionaries(st.integers(1, 16), st.integers(0, 1000), max_size=10)
TIMES = st.dictionaries(st.integers(1, 20), st.floats(1, 1e4), min_size=1, max_size=8)


def brute_force(steps: dict[int, int], step_us: dict[int, float], num_graphs: int) -> float | None:
    needed = {batch: count for batch, count in steps.items() if count}
    choices = [list(some) for number in range(1, num_graphs + 1) for some in combinations(sorted(step_us), number)]
    costs = [cost for some in choices if (cost := decode_s(needed, step_us, some)) is not None]
    return min(costs, default=None)


@settings(deadline=None)
@given(steps=STEPS, step_us=TIMES, num_graphs=st.integers(0, 9))
def test_choice_is_as_cheap_as_the_best_of_every_subset(steps: dict[int, int], step_us: dict[int, float], num_graphs: int) -> None:
    found = best_sizes(steps, step_us, num_graphs)
    least = brute_force(steps, step_us, num_graphs)
    if least is None:
        assert found is None
        return
    assert found is not None
    assert found.decode_s == pytest.approx(least)
    assert len(found.capture_sizes) <= num_graphs
    assert found.capture_sizes == sorted(set(found.capture_sizes))
    needed = {batch: count for batch, count in steps.items() if count}
    assert decode_s(needed, step_us, found.capture_sizes) == pytest.approx(found.decode_s)


@settings(deadline=None)
@given(steps=STEPS, step_us=TIMES)
def test_fewest_sizes_cost_at_most_one_hundredth_more(steps: dict[int, int], step_us: dict[int, float]) -> None:
    found, cheapest = fewest_close_sizes(steps, step_us), best_sizes(steps, step_us, len(step_us))
    assert (found is None) == (cheapest is None)
    if found and cheapest:
        assert found.decode_s <= cheapest.decode_s * 1.01 + 1e-12
        assert len(found.capture_sizes) <= len(cheapest.capture_sizes)


def test_size_that_no_step_needs_is_left_out() -> None:
    steps, step_us = {1: 900, 7: 100}, {1: 10.0, 2: 11.0, 4: 12.0, 8: 20.0}
    found = best_sizes(steps, step_us, 4)
    assert found is not None
    assert found.capture_sizes == [1, 8]
    assert found.decode_s == pytest.approx((900 * 10 + 100 * 20) / 1e6)


def test_one_graph_is_the_cheapest_size_that_holds_every_batch() -> None:
    found = best_sizes({3: 5}, {2: 1.0, 4: 9.0, 8: 8.0}, 1)
    assert found is not None
    assert found.capture_sizes == [8]


def test_batch_past_the_largest_measured_size_has_no_choice() -> None:
    assert best_sizes({9: 1}, {8: 1.0}, 3) is None
    assert decode_s({9: 1}, {8: 1.0}, [8]) is None


def test_option_is_what_vllm_reads() -> None:
    assert vllm_option([1, 8]) == "--compilation-config '{\"cudagraph_capture_sizes\": [1, 8]}'"
