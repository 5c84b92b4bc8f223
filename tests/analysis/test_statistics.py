"""Known answers for estimates, percentiles and classes; coverage of the interval by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.analysis import statistics
from stages.core.records.answer import Estimate


def ratio(value: float, low: float | None, high: float | None) -> Estimate:
    return Estimate(value=value, low=low, high=high, num_sets=1 if low is None else 3)


def test_interval_is_none_with_one_set() -> None:
    assert statistics.estimate([7.0]) == Estimate(value=7.0, low=None, high=None, num_sets=1)


def test_interval_of_three_sets_is_student_t_with_two_degrees_of_freedom() -> None:
    found = statistics.estimate([9.0, 10.0, 11.0])
    half = 4.302652729911275 / math.sqrt(3)  # t(0.975, 2) * s / sqrt(n), s = 1
    assert found.value == 10.0
    assert (found.low, found.high) == pytest.approx((10 - half, 10 + half))


@pytest.mark.parametrize("num_sets", [3, 6])
def test_interval_covers_the_truth_in_at_least_93_percent_of_simulated_twin_studies(num_sets: int) -> None:
    rng = np.random.default_rng(num_sets)
    studies = rng.normal(0.0, 0.006, size=(2000, num_sets))
    covered = 0
    for study in studies:
        found = statistics.estimate(study.tolist())
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0 <= found.high
    assert 0.93 <= covered / 2000 <= 0.97


def test_p99_needs_459_samples_and_p90_needs_20() -> None:
    assert statistics.timing([1.0] * 19).p90 is None
    assert statistics.timing([1.0] * 20).p90 == 1.0
    assert statistics.timing([1.0] * 458).p99 is None
    assert statistics.timing([float(i) for i in range(1, 1002)]).p99 == 991.0


def test_percentiles_of_nothing_are_none() -> None:
    found = statistics.percentiles([])
    assert (found.n, found.p50, found.mean) == (0, None, None)


def test_ecdf_keeps_few_samples_and_both_ends_of_many() -> None:
    assert statistics.ecdf([3.0, 1.0, 2.0]) == [1.0, 2.0, 3.0]
    many = statistics.ecdf([float(i) for i in range(1000)])
    assert (len(many), many[0], many[-1]) == (200, 0.0, 999.0)
    assert many == sorted(many)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(0.02, 0.03, "faster"), (-0.03, -0.02, "slower"), (-0.005, 0.008, "same"), (0.005, 0.02, "undecided"), (-0.02, 0.02, "undecided")],
)
def test_class_follows_the_interval_and_the_margin(low: float, high: float, expected: str) -> None:
    assert statistics.classify(ratio((low + high) / 2, low, high), math.log1p(0.01)) == expected


@pytest.mark.parametrize(("speedup", "expected"), [(1.04, "undecided"), (0.97, "undecided"), (1.06, "faster"), (0.94, "slower")])
def test_one_set_leaves_differences_under_5_percent_undecided(speedup: float, expected: str) -> None:
    assert statistics.classify(ratio(math.log(speedup), None, None), math.log1p(0.01)) == expected


def test_one_set_also_respects_a_noisy_machine() -> None:
    assert statistics.classify(ratio(0.08, None, None), 0.10) == "undecided"


def test_margin_is_one_percent_or_the_largest_twin_spread() -> None:
    assert statistics.margin([0.002]) == math.log1p(0.01)
    assert statistics.margin([0.002, statistics.spread([0.03, -0.04])]) == pytest.approx(math.sqrt((0.0009 + 0.0016) / 2))


def test_wilson_interval_matches_the_published_formula() -> None:
    low, high = statistics.wilson(95, 100)
    assert (low, high) == pytest.approx((0.88825, 0.97846), abs=1e-4)
    assert statistics.wilson(0, 0) == (0.0, 1.0)


@given(st.integers(0, 500), st.integers(1, 500))
def test_wilson_interval_holds_the_share(successes: int, trials: int) -> None:
    share = min(successes, trials) / trials
    low, high = statistics.wilson(share * trials, trials)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1
