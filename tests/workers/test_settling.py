"""Warm-up by evidence: it ends when two consecutive windows agree, and a shape that never does is not settled."""

from __future__ import annotations

import time
from typing import Any

import pytest

from stages.workers import settling
from stages.workers.settling import MAX_WINDOWS, WINDOW_CALLS, disagreement, settle
from tests.workers.conftest import MakeService


def test_windows_that_agree_settle_and_those_that_differ_say_in_what() -> None:
    assert disagreement([[100.0] * 5]) == "one window only"
    assert disagreement([[900.0] * 5, [100.0] * 5, [101.0, 99.0, 100.0, 102.0, 100.0]]) == ""
    assert disagreement([[100.0] * 5, [150.0] * 5]) == "medians of consecutive windows are 100 and 150 us"
    assert disagreement([[100.0] * 5, [900.0, 95.0, 92.0, 100.0, 900.0]]) == ""


def slowed(service: Any, shape: str, delays_s: list[float]) -> None:
    """The calls of a shape take this long; those after the last delay take the last again."""
    calls = iter(delays_s)

    def run() -> None:
        time.sleep(next(calls, delays_s[-1]))

    service.steps[shape] = run


def test_slow_first_calls_are_warmed_up(make_service: MakeService) -> None:
    service = make_service("tiny")
    slowed(service, "decode/1", [0.03] * WINDOW_CALLS + [0.01])
    (found,) = settle(service, ["decode/1"], context_tokens=16)
    assert found["settled"], found
    assert found["num_calls"] >= 3 * WINDOW_CALLS


def test_compilation_in_every_window_is_not_settled_and_ends_at_the_cap(make_service: MakeService) -> None:
    service = make_service("tiny")
    step = service.steps["decode/1"]

    def compiling() -> Any:
        service.instruments["phases"].seconds["dynamo_s"] += 0.5
        return step()

    service.steps["decode/1"] = compiling
    (found,) = settle(service, ["decode/1"], context_tokens=16)
    assert (found["settled"], found["num_calls"]) == (False, MAX_WINDOWS * WINDOW_CALLS)
    assert found["reason"] == "not settled after 40 calls: the compiler ran for 2.500 s"


def test_time_is_capped_after_two_windows(make_service: MakeService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "MAX_SECONDS", 0.0)
    service = make_service("tiny")
    slowed(service, "decode/2", [0.001 * 2**call for call in range(6)])
    (found,) = settle(service, ["decode/2"], context_tokens=16)
    assert (found["num_calls"], found["settled"]) == (2 * WINDOW_CALLS, False)
