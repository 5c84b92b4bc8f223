"""Completions and break-even against hand computation and a brute-force simulation."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.analysis import lifetimes, services
from stages.analysis.lifetimes import Corners, Service, replaced

EAGER = Service(ready_s=5.0, goodput_per_s=4.0, capacity_per_s=4.0)
FAST = Service(ready_s=45.0, goodput_per_s=8.0, capacity_per_s=8.0)


def once(service: Service) -> Corners:
    return Corners(service, service, service, complete=False)


def around(service: Service, ready_s: float, goodput_per_s: float) -> Corners:
    worst = service._replace(ready_s=service.ready_s + ready_s, goodput_per_s=service.goodput_per_s - goodput_per_s)
    best = service._replace(ready_s=service.ready_s - ready_s, goodput_per_s=service.goodput_per_s + goodput_per_s)
    return Corners(service, worst, best, complete=True)


def simulated(lifetime_s: float, service: Service, step_s: float) -> float:
    """The queue in small steps: fresh requests first, then the oldest that has waited less than the limit."""
    waiting: list[list[float]] = []
    useful = 0.0
    for index in range(round(lifetime_s / step_s)):
        now = index * step_s
        arrived = service.goodput_per_s * step_s
        if now < service.ready_s - step_s / 2:
            waiting.append([now, arrived])
            continue
        useful += arrived
        spare = (service.capacity_per_s - service.goodput_per_s) * step_s
        waiting = [entry for entry in waiting if now - entry[0] < service.ttft_limit_s - step_s / 2 and entry[1] > 0]
        for entry in waiting:
            taken = min(spare, entry[1])
            entry[1] -= taken
            spare -= taken
            useful += taken
    return useful


def test_without_spare_capacity_or_limit_completions_are_the_closed_form() -> None:
    for lifetime_s, expected in ((0.0, 0.0), (5.0, 0.0), (6.0, 4.0), (100.0, 380.0)):
        assert lifetimes.completions(lifetime_s, EAGER) == expected  # 4 (L - 5)


def test_only_the_backlog_that_has_not_missed_its_limit_counts() -> None:
    service = Service(ready_s=10.0, goodput_per_s=2.0, capacity_per_s=6.0, ttft_limit_s=1.0)
    assert lifetimes.completions(110.0, service) == 202.0  # 2/s * 100 s, and the 2 that came in the last second
    assert lifetimes.completions(10.25, service) == pytest.approx(0.5 + 1.0)


def test_break_even_by_hand() -> None:
    found = lifetimes.break_even(once(FAST), once(EAGER))
    assert (found.answer, found.lifetime_s, found.low_s) == ("at", 85.0, None)  # 4 (L - 5) = 8 (L - 45)


def test_a_mode_that_is_ready_first_and_serves_more_is_always_ahead() -> None:
    assert lifetimes.break_even(once(FAST._replace(ready_s=5.0)), once(EAGER)).answer == "always"


def test_a_mode_that_serves_no_more_and_is_ready_later_is_never_ahead() -> None:
    assert lifetimes.break_even(once(FAST._replace(goodput_per_s=4.0)), once(EAGER)).answer == "never"
    assert lifetimes.break_even(once(FAST._replace(goodput_per_s=3.0)), once(EAGER)).answer == "never"
    assert lifetimes.break_even(once(EAGER), once(EAGER)).answer == "never"


def test_interval_comes_from_opposed_corners() -> None:
    found = lifetimes.break_even(around(FAST, 5.0, 0.5), around(EAGER, 1.0, 0.5))
    assert found.answer == "at"
    assert found.low_s == pytest.approx((8.5 * 40 - 3.5 * 6) / 5)
    assert found.high_s == pytest.approx((7.5 * 50 - 4.5 * 4) / 3)


def test_corners_that_disagree_are_undecided() -> None:
    found = lifetimes.break_even(around(FAST._replace(goodput_per_s=4.2), 1.0, 0.5), around(EAGER, 1.0, 0.5))
    assert (found.answer, found.high_s) == ("undecided", None)
    assert found.lifetime_s == pytest.approx((4.2 * 45 - 4 * 5) / 0.2)


SERVICES = st.builds(
    lambda ready, goodput, spare, limit: Service(ready / 4, goodput / 4, (goodput + spare) / 4, limit / 4),
    st.integers(0, 60),
    st.integers(1, 40),
    st.integers(0, 40),
    st.integers(0, 16),
)


@settings(max_examples=60, deadline=None)
@given(SERVICES, st.integers(0, 160))
def test_completions_agree_with_a_simulated_queue(service: Service, quarters: int) -> None:
    step_s = 1 / 64
    found = lifetimes.completions(quarters / 4, service)
    assert found == pytest.approx(simulated(quarters / 4, service, step_s), abs=6 * step_s * (service.capacity_per_s + 1))


@settings(max_examples=100, deadline=None)
@given(SERVICES, SERVICES)
def test_break_even_agrees_with_a_search_over_lifetimes(mode: Service, baseline: Service) -> None:
    """Against an exhaustive look at every 1/16 s up to far beyond the last kink."""
    found = lifetimes.crossing_s(mode, baseline)
    leads = {i / 16: lifetimes.completions(i / 16, mode) - lifetimes.completions(i / 16, baseline) for i in range(16 * 120)}
    after = [lead for at, lead in leads.items() if at > found]
    if math.isinf(found):
        slope = mode.goodput_per_s - baseline.goodput_per_s
        assert slope < 0 or (slope == 0 and list(leads.values())[-1] <= 1e-6)
        return
    assert all(lead >= -1e-6 for lead in after)
    behind = [at for at, lead in leads.items() if lead < -1e-6]
    if behind and found < 119:
        assert max(behind) < found <= max(behind) + 1 / 16 + 1e-6
    if found > 0:  # the grid may step over a short time behind
        just_before = found - 1e-4
        assert lifetimes.completions(just_before, mode) < lifetimes.completions(just_before, baseline)


def test_arrivals_served_equally_are_compared_by_their_starts_alone() -> None:
    mode, baseline = around(Service(6.0, 1.995, 8.0), 0.1, 0.01), around(Service(5.0, 2.0, 4.0), 0.1, 0.01)
    assert services.break_even_at(mode, baseline, "2", (False, False)).answer == "never"
    early = around(Service(4.0, 1.995, 8.0), 0.1, 0.01)
    assert services.break_even_at(early, baseline, "2", (False, False)).answer == "always"


def test_a_maximum_that_was_not_reached_leaves_saturation_undecided() -> None:
    assert services.break_even_at(once(FAST), once(EAGER), services.SATURATION, (False, True)).answer == "undecided"
    assert services.break_even_at(once(EAGER), once(FAST._replace(ready_s=1.0)), services.SATURATION, (True, False)).answer == "undecided"
    assert services.break_even_at(once(FAST), once(EAGER), services.SATURATION, (True, False)).answer == "at"


def test_grid_has_zero_and_every_lifetime_asked_for() -> None:
    grid = lifetimes.grid_s([60.0, 0.5, 3600.0])
    assert {0.0, 0.5, 60.0, 3600.0} <= set(grid)
    assert grid == sorted(grid)


def test_a_worker_that_is_replaced_loses_its_start_each_time() -> None:
    assert replaced(60.0, 600.0) == (0.1, pytest.approx(1 / 9))
    assert replaced(0.0, 600.0) == (0.0, 0.0)
    assert replaced(60.0, 60.0) == (1.0, None)
    assert replaced(90.0, 60.0) == (1.0, None)


@given(st.floats(0.01, 1000), st.floats(1.01, 100), st.integers(1, 50))
def test_a_fleet_with_the_extra_workers_does_the_same_work(ready_s: float, times: float, num_workers: int) -> None:
    """Brute force: seconds served by the larger fleet in one period are those of as many workers that never start."""
    every_s = ready_s * times
    extra = replaced(ready_s, every_s).extra_workers
    assert extra is not None
    served_s = num_workers * (1 + extra) * (every_s - ready_s)
    assert served_s == pytest.approx(num_workers * every_s)
