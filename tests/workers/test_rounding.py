"""Limits over few tokens: a healthy rounding keeps them whichever tokens were drawn, a larger error does not."""

from __future__ import annotations

import math

import pytest
import torch
from scipy.stats import gamma

from stages.workers.probes.bench import set_up
from stages.workers.probes.rounding import FALSE_ALARM, Rounding, rounding
from tests.workers.conftest import MakeService, node


@pytest.mark.parametrize(("tokens", "expected"), [(2, 6.908), (20, 2.266), (200, 1.338)])
def test_tail_is_the_quantile_of_a_mean_of_so_many_tokens(tokens: int, expected: float) -> None:
    assert Rounding(mean=1.0, shape=0.5).tail(tokens) == pytest.approx(expected, rel=1e-3)


def test_tail_is_exceeded_as_often_as_it_says() -> None:
    found, drawn = Rounding(mean=1.0, shape=0.2), gamma.rvs(0.2, scale=5.0, size=(200_000, 6), random_state=1).mean(axis=1)
    assert float((drawn > found.tail(6)).mean()) == pytest.approx(FALSE_ALARM, rel=0.3)


def test_errors_that_are_all_alike_need_no_tail() -> None:
    exact = torch.eye(4, dtype=torch.float64)
    assert rounding(exact * 1.01, exact) == Rounding(pytest.approx(1e-4), math.inf)
    assert rounding(exact, exact) == Rounding(0.0, math.inf)
    assert Rounding(1e-4, math.inf).tail(3) == 1.0


def test_squared_errors_are_those_of_each_token_relative_to_its_logits() -> None:
    exact = torch.tensor([[3.0, 4.0], [30.0, 40.0]], dtype=torch.float64)
    found = rounding(exact + torch.tensor([[0.05, 0.0], [0.0, 0.5]]), exact)
    assert found.mean == pytest.approx(1e-4)
    found = rounding(exact + torch.tensor([[0.05, 0.0], [0.0, 0.0]]), exact)
    assert (found.mean, found.shape) == (pytest.approx(0.5e-4), pytest.approx(0.5))


def test_limit_falls_with_the_tokens_and_rises_with_eagers_own_error(make_service: MakeService) -> None:
    bench = set_up(make_service("known_answer"), "fp32", node("mode", "eager"), calls_per_shape=6, num_examples=1)
    assert 1e-9 < math.sqrt(bench.rounding.mean) < 1e-5
    everywhere = math.sqrt(bench.rounding.mean)
    limits = [bench.error_limit(0.0, tokens) for tokens in (3, 6, 24, 96, 10**6)]
    assert limits == sorted(limits, reverse=True)
    assert limits[-1] == pytest.approx(3 * everywhere + 1e-6, rel=0.01)
    assert bench.error_limit(2 * everywhere, 24) == pytest.approx(2 * (limits[2] - 1e-6) + 1e-6)
