"""The limit of a mode's divergence: held for healthy roundings of a handful of tokens, exceeded by real differences."""

from __future__ import annotations

import math

import pytest
import torch

from stages.workers.probes.divergence import Divergences, eager_variance
from stages.workers.probes.rounding import Rounding

SIGMA = 0.05
VOCABULARY = 100
SQUARES = Rounding(mean=1.0, shape=0.5)
"""Squared errors of one normal variable a token: chi-square with one degree of freedom."""


def peaked(tokens: int, generator: torch.Generator) -> torch.Tensor:
    """Logits [n, v] of a trained model: most tokens certain, few not."""
    logits = torch.randn(tokens, VOCABULARY, generator=generator, dtype=torch.float64)
    logits[torch.arange(tokens), torch.randint(VOCABULARY, (tokens,), generator=generator)] += 4 + 12 * torch.rand(
        tokens, generator=generator
    )
    return logits


def rounded(exact: torch.Tensor, sigma: float, generator: torch.Generator) -> torch.Tensor:
    return exact + sigma * torch.randn(exact.shape, generator=generator, dtype=torch.float64)


def compared(tokens: int, times: float, generator: torch.Generator) -> Divergences:
    """Eager with errors of SIGMA, a mode with errors `times` as large."""
    seen, exact = Divergences(), peaked(tokens, generator)
    seen.add(rounded(exact, times * SIGMA, generator), rounded(exact, SIGMA, generator), exact)
    return seen


@pytest.fixture
def generator() -> torch.Generator:
    return torch.Generator().manual_seed(1)


def test_divergence_is_the_variance_times_the_spread(generator: torch.Generator) -> None:
    assert eager_variance([compared(20_000, 1, generator)]) == pytest.approx(SIGMA**2, rel=0.05)


def test_another_healthy_rounding_of_six_tokens_never_exceeds_the_limit(generator: torch.Generator) -> None:
    """A multiple of eager's own sum over the same six tokens, the rule before, is exceeded now and then."""
    above, above_before = 0, 0
    for _ in range(400):
        shapes = [compared(tokens, 1, generator) for tokens in (6, 6, 12, 24, 48)]
        variance = 4 * eager_variance(shapes)
        above += sum(shape.mean("mode") > shape.limit(variance, SQUARES) for shape in shapes)
        above_before += sum(shape.mean("mode") > 4 * shape.mean("eager") for shape in shapes)
    assert above == 0
    assert above_before > 2


def test_errors_as_large_as_they_may_be_are_within_the_limit_too(generator: torch.Generator) -> None:
    shapes = [compared(6, 2, generator) for _ in range(1000)]
    assert sum(shape.mean("mode") > shape.limit(4 * SIGMA**2, SQUARES) for shape in shapes) <= 5


@pytest.mark.parametrize(("tokens", "times"), [(48, 5.0), (6, 20.0)])
def test_larger_errors_exceed_the_limit(tokens: int, times: float, generator: torch.Generator) -> None:
    shapes = [compared(tokens, times, generator) for _ in range(50)]
    assert sum(shape.mean("mode") > shape.limit(4 * SIGMA**2, SQUARES) for shape in shapes) >= 45


def test_limit_of_one_uncertain_token_is_that_of_one_square() -> None:
    assert Divergences(spreads=[0.25, 0.0]).limit(0.01, SQUARES) == pytest.approx(0.01 * 0.125 * 10.828, rel=1e-3)


def test_certain_tokens_allow_nothing_and_no_number_is_no_limit() -> None:
    assert Divergences(spreads=[0.0, 0.0]).limit(1.0, SQUARES) == 0.0
    assert eager_variance([Divergences(spreads=[0.0])]) == 0.0
    seen, exact = Divergences(), torch.zeros(2, 4, dtype=torch.float64)
    seen.add(exact * math.nan, exact, exact)
    assert not seen.mean("mode") <= seen.limit(1.0, SQUARES)
