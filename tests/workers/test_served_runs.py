"""A run's steady window, its memory, and what its queue means."""

from __future__ import annotations

from typing import Any

import pytest

from stages.core.records.load import ServedRequest
from stages.workers.served_runs import memory_growth, queueing_sentence, steady_window

SLO = {"ttft_ms": 100.0, "tpot_ms": 10.0}


def request(arrival_s: float, **changes: Any) -> ServedRequest:
    defaults: dict[str, Any] = {"request_id": 0, "prompt_tokens": 1, "output_tokens": 3, "queue_ms": 10, "ttft_ms": 50, "tpot_ms": 5}
    return ServedRequest(arrival_s=arrival_s, **{**defaults, "e2el_ms": 2000, "completed": True, **changes})


def test_steady_window_begins_after_the_mean_time_of_a_request() -> None:
    found = steady_window([request(float(at), ttft_ms=500 if at == 5 else 50) for at in range(10)], 10.0, SLO)
    assert found is not None
    assert (found.begin_s, found.end_s, found.num_sent) == (2.0, 10.0, 8)
    assert (found.request_goodput, found.slo_attainment) == (7 / 8.0, 7 / 8)


def test_steady_window_begins_at_half_of_the_run_at_the_latest_and_may_be_empty() -> None:
    unfinished = {"completed": False, "e2el_ms": None, "tpot_ms": None}
    found = steady_window([request(0.0), request(9.0, **unfinished)], 3.0, SLO)
    assert found is None
    late = steady_window([request(2.0, **unfinished)], 3.0, SLO)
    assert late is not None
    assert (late.begin_s, late.request_goodput) == (1.5, 0.0)


def test_memory_that_climbs_grows_and_memory_that_jitters_is_flat() -> None:
    mib = 1 << 20
    climbing = memory_growth([(float(at), 1000 * mib + 2 * at * mib) for at in range(30)])
    assert climbing is not None
    assert (climbing.verdict, climbing.bytes_per_s) == ("grows", pytest.approx(2 * mib))
    jitter = memory_growth([(float(at), 1000 * mib + at % 2 * mib) for at in range(30)])
    assert jitter is not None
    assert jitter.verdict == "flat"
    assert memory_growth([]) is None


def test_overload_says_how_much_faster_a_step_must_be_and_below_which_load_it_decides() -> None:
    text = queueing_sentence(0.8, rate_per_s=12.0, num_completed=60, busy_s=10.0, window_s=10.0)
    assert "80% of their time in the queue; the loop completes 6 requests a second" in text
    assert "changes little at this load" in text
    assert "2 times as fast; below about 5.7 requests/s the step decides" in text


def test_idle_service_is_shortened_by_a_faster_step_and_bursts_are_named() -> None:
    assert "a faster step shortens them" in queueing_sentence(0.02, 2.0, 20, 2.0, 10.0)
    assert "they come in bursts" in queueing_sentence(0.7, 2.0, 20, 4.0, 10.0)
    assert "nothing can be said" in queueing_sentence(0.0, 2.0, 0, 0.0, 10.0)
