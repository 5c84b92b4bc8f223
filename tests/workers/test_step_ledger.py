"""A walk by hand: what the counters gained in each step, and the account that follows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from stages.workers.churn import churn_of
from stages.workers.step_ledger import MOST_EVENTS, StepLedger


class Torch:
    """Stands for the counters and the log: a test says what each step did."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.said: list[tuple[str, str]] = []

    def snapshot(self) -> Counter[str]:
        return Counter(self.counts)


def walked(steps: list[dict[str, int]], replay: str = "none", num_planned: int = 10, size: int = 3, said: str = "") -> dict[str, Any]:
    torch = Torch()
    ledger = StepLedger(torch, torch, replay, num_planned)
    for did in steps:
        torch.counts.update(did)
        if said and did.get("compilation"):
            torch.said.append(("recompile", said))
        ledger.add("decode", size, 4, wall_s=0.5)
    return ledger.document()


CALL = {"compiled_call": 1, "compiled_call:1/0": 1}
COMPILE = {**CALL, "compilation": 1}


def test_runs_of_equal_paths_are_joined_in_order() -> None:
    runs = walked([CALL, CALL, COMPILE, CALL])["path_runs"]
    assert [(run["path"], run["count"]) for run in runs] == [("compiled", 2), ("recompiled", 1), ("compiled", 1)]


def test_shape_has_its_paths_tokens_time_and_compiled_ids() -> None:
    (shape,) = walked([CALL, CALL, COMPILE])["shapes"]
    assert (shape["phase"], shape["padded_size"], dict(shape["compiled_calls"])) == ("decode", 4, {"1/0": 3})
    assert shape["paths"]["compiled"] == {"num_steps": 2, "num_tokens": 6, "wall_s": 1.0}
    assert shape["paths"]["recompiled"] == {"num_steps": 1, "num_tokens": 3, "wall_s": 0.5}


def test_reason_belongs_to_the_step_that_it_hit() -> None:
    events = walked([CALL, COMPILE, CALL], said="step at a.py:1 recompiled: x")["events"]
    (event,) = events
    assert (event["step"], event["path"], event["size"], event["padded_size"]) == (1, "recompiled", 3, 4)
    assert event["reasons"] == ["step at a.py:1 recompiled: x"]


def test_events_are_limited_and_counts_are_not() -> None:
    document = walked([COMPILE] * (MOST_EVENTS + 50), num_planned=MOST_EVENTS + 50)
    assert len(document["events"]) == MOST_EVENTS
    assert document["counts"]["compilation"] == MOST_EVENTS + 50


def test_step_in_a_package_is_compiled_and_one_without_a_package_is_a_fallback() -> None:
    document = walked([{"package_call": 1}, {"unsupported_call": 1, "unsupported_call:[3] [3]": 1}])
    assert [run["path"] for run in document["path_runs"]] == ["compiled", "fallback"]
    assert [(event["step"], event["path"]) for event in document["events"]] == [(1, "fallback")]
    assert document["counts"]["unsupported_call:[3] [3]"] == 1


@pytest.mark.parametrize(
    ("steps", "verdict", "settled_after", "num_events"),
    [
        ([CALL] * 10, "settled", 0, 0),
        ([COMPILE, CALL, COMPILE, *[CALL] * 7], "settled", 3, 2),
        ([*[CALL] * 9, COMPILE], "not_settled", None, 1),
        ([COMPILE] * 10, "not_settled", None, 10),
    ],
)
def test_walk_settles_when_its_second_half_is_quiet(
    steps: list[dict[str, int]], verdict: str, settled_after: int | None, num_events: int
) -> None:
    churn = churn_of(walked(steps))
    assert (churn.verdict, churn.settled_after_steps, churn.num_events) == (verdict, settled_after, num_events)
    assert churn.events_per_1000_steps == 100 * num_events
    assert churn.wall_s == 0.5 * num_events


def test_recording_is_not_counted_as_a_capture_too() -> None:
    recorded = {"tree_run": 1, "tree_record": 1, "capture": 1, "compiled_call": 1}
    (window,) = churn_of(walked([recorded, {"capture": 1}], replay="trees")).windows
    assert (window.num_recordings, window.num_captures, window.num_recompiles) == (1, 1, 0)


def test_windows_are_a_hundred_steps_and_a_thousand_on_a_long_walk() -> None:
    short = churn_of(walked([CALL] * 250, num_planned=250))
    long = churn_of(walked([CALL] * 2500, num_planned=2500))
    assert [window.num_steps for window in short.windows] == [100, 100, 50]
    assert [window.first_step for window in long.windows] == [0, 1000, 2000]
