"""The search for the highest rate that meets the limits."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.core.records.load import Probe
from stages.workers.goodput_search import MAX_DOUBLINGS, PRECISION, highest_met, search


class Service:
    """Meets the limits up to a rate."""

    def __init__(self, limit: float, weak_seed: int = 0) -> None:
        self.limit, self.weak_seed = limit, weak_seed
        self.asked: list[tuple[float, int]] = []

    def __call__(self, rate: float, seed: int) -> tuple[float, float]:
        self.asked.append((rate, seed))
        limit = self.limit / 2 if seed == self.weak_seed else self.limit
        return (rate, 1.0) if rate <= limit else (rate / 4, 0.25)


@given(st.floats(0.1, 100.0), st.floats(1.0, 8.0))
def test_highest_rate_is_found_within_5_percent(limit: float, start: float) -> None:
    service = Service(limit)
    best = highest_met(search(service, None, None, start))
    if best is None:
        assert limit < start / 2 ** (MAX_DOUBLINGS - 1)
    elif limit < start * 2 ** (MAX_DOUBLINGS - 1):
        assert best[0] <= limit <= best[0] * PRECISION * 1.0001


def test_known_bounds_are_not_measured_again() -> None:
    service = Service(7.0)
    probes = search(service, met=6.0, missed=8.0, start=6.0)
    assert all(6.0 < rate < 8.0 for rate, _ in service.asked)
    best = highest_met(probes)
    assert best is not None
    assert 6.6 < best[0] <= 7.0


def test_rate_is_met_only_when_both_seeds_meet_it() -> None:
    best = highest_met(search(Service(10.0, weak_seed=2), None, None, 4.0))
    assert best is not None
    assert best[0] <= 5.0


def test_rate_that_the_first_seed_misses_is_not_run_with_the_second() -> None:
    service = Service(1.0)
    search(service, met=0.9, missed=1.2, start=1.0)
    missed = [rate for rate, _ in service.asked if rate > 1.0]
    assert len(missed) == len(set(missed))


def test_service_without_a_limit_ends_after_six_doublings() -> None:
    probes = search(Service(1e9), None, None, 1.0)
    rates = list(dict.fromkeys(probe.arrival_rate_per_s for probe in probes))
    assert len(rates) == MAX_DOUBLINGS
    assert all(second == 2 * first for first, second in pairwise(rates))
    assert highest_met(probes) == (pytest.approx(32.0), pytest.approx(32.0))


def test_nothing_met_has_no_highest_rate() -> None:
    missed = Probe(arrival_rate_per_s=1.0, seed=1, request_goodput=0.1, slo_attainment=0.1, met=False)
    assert highest_met([missed]) is None
