from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

from stages.core.errors import UserError
from stages.traces.chat import Chat


@pytest.fixture(scope="module")
def large() -> Chat:
    return Chat(num_requests=20_000)


def test_lengths_have_the_fitted_quantiles(large: Chat) -> None:
    requests = large.requests()
    prompts = numpy.quantile([r.prompt_tokens for r in requests], [0.5, 0.95])
    outputs = numpy.quantile([r.output_tokens for r in requests], [0.5, 0.95])
    assert prompts == pytest.approx([1020, 4083], rel=0.04)
    assert outputs == pytest.approx([129, 451], rel=0.04)


def test_arrivals_have_the_rate_and_variation_asked_for(large: Chat) -> None:
    gaps_s = numpy.diff([r.arrival_s for r in large.requests()])
    assert 1 / gaps_s.mean() == pytest.approx(5.53, rel=0.03)
    assert gaps_s.std() / gaps_s.mean() == pytest.approx(1.09, rel=0.03)


def test_lengths_stay_between_one_and_the_maximum() -> None:
    requests = Chat(num_requests=5_000, prompt_p50=2, prompt_p95=20, prompt_max=30, output_p50=1, output_p95=9, output_max=10).requests()
    assert {min(r.prompt_tokens for r in requests), min(r.output_tokens for r in requests)} == {1}
    assert max(r.prompt_tokens for r in requests) == 30
    assert max(r.output_tokens for r in requests) == 10


def test_same_seed_gives_the_same_requests_and_another_seed_others() -> None:
    assert Chat(seed=3).requests() == Chat(seed=3).requests()
    assert Chat(seed=3).requests() != Chat(seed=4).requests()


def test_more_requests_begin_with_the_same_ones() -> None:
    assert Chat(num_requests=50).requests() == Chat(num_requests=90).requests()[:50]


def test_first_request_arrives_at_zero_and_times_are_sorted() -> None:
    arrivals_s = [r.arrival_s for r in Chat(num_requests=300).requests()]
    assert arrivals_s[0] == 0
    assert arrivals_s == sorted(arrivals_s)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_requests": 1}, "trace.num_requests: must be from 2"),
        ({"rate_per_s": 0.0}, "trace.rate_per_s: must be from"),
        ({"rate_per_s": math.nan}, "trace.rate_per_s: must be from"),
        ({"arrival_cv": -1.0}, "trace.arrival_cv: must be from"),
        ({"seed": -1}, "trace.seed: must be from 0"),
        ({"prompt_p50": -5}, "trace.prompt_p50: must be 1 <= p50"),
        ({"output_p95": 100}, "trace.output_p50: must be 1 <= p50"),
        ({"prompt_max": 4000}, "trace.prompt_p50: must be 1 <= p50"),
    ],
)
def test_a_setting_out_of_range_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        Chat(**settings)
