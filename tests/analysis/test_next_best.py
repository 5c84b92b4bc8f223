"""Ahead of all other modes: by hand, and against an exhaustive look at every lifetime."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.analysis import answers, lifetimes, next_best
from stages.analysis.lifetimes import Corners, Service
from stages.core.records.lifetime import BreakEven
from tests.analysis.hand_made import Spec, example_records, records_of, times

EAGER = Service(ready_s=5.0, goodput_per_s=4.0, capacity_per_s=4.0)
GRAPH = Service(ready_s=6.0, goodput_per_s=7.0, capacity_per_s=7.0)
BOTH = Service(ready_s=60.0, goodput_per_s=8.0, capacity_per_s=8.0)


def once(service: Service) -> Corners:
    return Corners(service, service, service, complete=False)


def against(mode: Service, others: dict[str, Service]) -> BreakEven:
    return next_best.ahead_of_all({name: lifetimes.break_even(once(mode), once(other)) for name, other in others.items()})


def test_the_mode_that_is_overtaken_last_is_named_by_hand() -> None:
    found = against(BOTH, {"eager": EAGER, "cuda_graph": GRAPH})
    assert (found.answer, found.against, found.lifetime_s) == ("at", "cuda_graph", 438.0)  # 8 (L - 60) = 7 (L - 6)
    assert lifetimes.break_even(once(BOTH), once(EAGER)).lifetime_s == 115.0


def test_a_mode_that_another_overtakes_for_good_never_leads() -> None:
    found = against(GRAPH, {"eager": EAGER, "compile_cuda_graph": BOTH})
    assert (found.answer, found.against, found.lifetime_s) == ("never", "compile_cuda_graph", None)


def test_undecided_with_one_mode_is_undecided_and_never_with_another_is_never() -> None:
    at = BreakEven(answer="at", lifetime_s=900.0, low_s=800.0, high_s=1000.0)
    unclear = BreakEven(answer="undecided", lifetime_s=100.0, low_s=90.0, high_s=None)
    never = BreakEven(answer="never", lifetime_s=None, low_s=None, high_s=None)
    assert next_best.ahead_of_all({"a": at, "b": unclear}).answer == "undecided"
    found = next_best.ahead_of_all({"a": at, "b": unclear, "c": never})
    assert (found.answer, found.against) == ("never", "c")


def test_interval_is_as_late_as_that_of_the_latest() -> None:
    early = BreakEven(answer="at", lifetime_s=100.0, low_s=90.0, high_s=2000.0)
    late = BreakEven(answer="at", lifetime_s=900.0, low_s=800.0, high_s=1000.0)
    found = next_best.ahead_of_all({"a": early, "b": late})
    assert (found.against, found.lifetime_s, found.low_s, found.high_s) == ("b", 900.0, 800.0, 2000.0)
    unknown = early.model_copy(update={"high_s": None})
    assert next_best.ahead_of_all({"a": unknown, "b": late}).high_s is None


SERVICES = st.builds(
    lambda ready, goodput, spare, limit: Service(ready / 4, goodput / 4, (goodput + spare) / 4, limit / 4),
    st.integers(0, 60),
    st.integers(1, 40),
    st.integers(0, 40),
    st.integers(0, 16),
)


@settings(max_examples=80, deadline=None)
@given(SERVICES, st.lists(SERVICES, min_size=1, max_size=3))
def test_ahead_of_all_agrees_with_a_search_over_lifetimes(mode: Service, others: list[Service]) -> None:
    found = against(mode, {str(index): other for index, other in enumerate(others)})

    def lead(lifetime_s: float) -> float:
        return lifetimes.completions(lifetime_s, mode) - max(lifetimes.completions(lifetime_s, other) for other in others)

    far_s = 1e6  # far beyond every kink: only slopes count
    if found.answer == "never":
        assert lead(far_s) <= 1e-3
        return
    assert found.lifetime_s is not None
    assert not math.isinf(found.lifetime_s)
    assert all(lead(found.lifetime_s + index / 8) >= -1e-6 for index in range(1, 8 * 120))
    if found.lifetime_s > 0:
        assert lead(found.lifetime_s - 1e-4) < 0


def test_records_give_every_ranked_mode_its_rival_from_each_cache_state() -> None:
    records = example_records()
    found = answers.answer(records).modes
    best = found["compile_cuda_graph"].lifetime
    assert best
    assert best.next_best["saturation"].keys() == {"cold", "warm", "artifact"}
    assert best.next_best["saturation"]["cold"].against == "cuda_graph"
    assert best.next_best["2"]["cold"].answer == "never"
    trees = found["cudagraph_trees"].lifetime
    assert trees is None or trees.next_best == {}, "refuted"
    for rate in best.next_best.values():
        assert all(entry.against != "max_autotune_cuda_graph" for entry in rate.values()), "wrong answers are no rival"


def test_a_study_of_one_mode_has_no_rivals() -> None:
    records = records_of({"eager": Spec(times(10, 20, 30), goodput={"2": 2.0})}, {})
    found = answers.lifetime(records, "eager")
    assert found
    assert found.next_best == {}


def test_replaced_workers_that_start_one_after_another_are_starting_that_share_of_the_time() -> None:
    """Brute force: 60 workers, replaced in turn; how many are starting, looked at every second for a period."""
    ready_s, every_s, num_workers = 45.0, 600.0, 60
    starting = [sum((second - index * every_s / num_workers) % every_s < ready_s for index in range(num_workers)) for second in range(600)]
    cost = lifetimes.replaced(ready_s, every_s)
    assert sum(starting) / (600 * num_workers) == pytest.approx(cost.share_lost)
    assert cost.extra_workers is not None
    needed = num_workers * (1 + cost.extra_workers)
    assert needed * (1 - cost.share_lost) == pytest.approx(num_workers)
