"""Arrival processes: seeded, the same for every mode, and the same pattern at every rate."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from stages.traces.arrivals import arriving, recorded_pace

REQUESTS: list[dict[str, Any]] = [
    {"request_id": index, "arrival_s": index * 0.5, "prompt_tokens": 10 + index, "output_tokens": 3} for index in range(4)
]


def gaps(process: str, rate_per_s: float = 10.0, seed: int = 1, gamma_shape: float = 0.25, until_s: float = 2000.0) -> np.ndarray:
    arrivals = [one["arrival_s"] for one in arriving(REQUESTS, process, rate_per_s, until_s, seed, gamma_shape)]
    return np.diff([0.0, *arrivals])


def test_recorded_arrivals_are_the_traces_own() -> None:
    assert arriving(REQUESTS, "recorded", 99.0, 1.0, 5, 0.5) == REQUESTS


@pytest.mark.parametrize(("process", "variation"), [("poisson", 1.0), ("gamma", 2.0)])
def test_gaps_have_the_mean_of_the_rate_and_the_variation_of_the_process(process: str, variation: float) -> None:
    found = gaps(process)
    assert found.mean() == pytest.approx(0.1, rel=0.05)
    assert found.std() / found.mean() == pytest.approx(variation, rel=0.05)


def test_lengths_follow_the_trace_and_start_again_with_new_request_numbers() -> None:
    found = arriving(REQUESTS, "poisson", 10.0, 1.0, 3, 0.5)
    assert len(found) > len(REQUESTS)
    assert [one["prompt_tokens"] for one in found[:6]] == [10, 11, 12, 13, 10, 11]
    assert [one["request_id"] for one in found] == list(range(len(found)))
    assert all(first["arrival_s"] < second["arrival_s"] <= 1.0 for first, second in pairwise(found))


def test_seed_decides_the_arrivals_and_the_rate_only_compresses_them() -> None:
    assert (gaps("poisson", until_s=50) == gaps("poisson", until_s=50)).all()
    assert gaps("poisson", seed=2)[0] != gaps("poisson", seed=1)[0]
    slow, fast = gaps("gamma", 1.0, until_s=100), gaps("gamma", 4.0, until_s=25)
    assert slow == pytest.approx(4 * fast)


BURSTY = [{"arrival_s": at} for at in (0.0, 4.0, 8.0, 9.0, 9.5, 10.0, 10.5, 11.0)]


@pytest.mark.parametrize(
    ("rate_per_s", "longest_s", "pace"),
    [
        (1.0, 4.0, (9.25 / 4.0, 4.0)),  # four requests, though the trace's mean would send one and a half
        (2.0, 4.0, (2.0 / (8 / 11.0), 4.0)),  # all eight
        (2.0, 9.0, (2.0 / (8 / 11.0), 4.0)),  # the trace ends first
        (0.01, 4.0, (2.0 / 4.0, 4.0)),  # one at least
    ],
)
def test_compressed_recorded_arrivals_have_the_rate_asked_for_in_the_window(
    rate_per_s: float, longest_s: float, pace: tuple[float, float]
) -> None:
    factor, window_s = recorded_pace(BURSTY, 8 / 11.0, rate_per_s, longest_s)
    assert (factor, window_s) == pytest.approx(pace)
    sent = sum(one["arrival_s"] / factor <= window_s for one in BURSTY)
    assert sent == max(1, min(8, round(rate_per_s * longest_s)))


def test_requests_that_arrive_all_at_once_in_the_window_take_the_rate_of_the_trace() -> None:
    together = [{"arrival_s": at} for at in (0.0, 0.0, 0.0, 0.0, 5.0, 6.0)]
    assert recorded_pace(together, 1.0, 2.0, 1.0) == (2.0, 1.0)
