"""Serving in real time: every request gets its tokens, and the clock of a request starts when it arrives."""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest

from stages.core.records.load import ServedRequest
from stages.core.service_levels import meets
from stages.workers.served_runs import summary
from stages.workers.serving import _spent, serve
from tests.workers.conftest import MakeService

LENGTHS = [(5, 4), (12, 1), (32, 7), (3, 2), (9, 5), (20, 3)]


def requests(gap_s: float = 0.001) -> list[dict[str, Any]]:
    return [
        {"request_id": index, "arrival_s": index * gap_s, "prompt_tokens": prompt, "output_tokens": output}
        for index, (prompt, output) in enumerate(LENGTHS)
    ]


def served(document: dict[str, Any]) -> list[ServedRequest]:
    return [ServedRequest(**request) for request in document["requests"]]


def test_every_request_is_served_whole(make_service: MakeService) -> None:
    document = serve(make_service("tiny"), requests(), rate_factor=1, duration_s=1, grace_s=30)
    found = served(document)
    assert [(one.prompt_tokens, one.output_tokens, one.completed) for one in found] == [(*lengths, True) for lengths in LENGTHS]
    decoded = sum(int(size) * count for size, count in document["batch_histogram"].items())
    assert decoded == sum(output - 1 for _, output in LENGTHS)
    assert document["num_decode_steps"] == sum(document["batch_histogram"].values())
    assert document["num_prefill_steps"] == len(LENGTHS)
    assert set(document["batch_histogram"]) <= {"1", "2"}


def test_times_of_a_request_follow_one_another_from_its_arrival(make_service: MakeService) -> None:
    for one in served(serve(make_service("tiny"), requests(), rate_factor=1, duration_s=1, grace_s=30)):
        assert one.queue_ms is not None
        assert one.ttft_ms is not None
        assert one.e2el_ms is not None
        assert 0 <= one.queue_ms < one.ttft_ms <= one.e2el_ms
        assert (one.tpot_ms is None) == (one.output_tokens == 1)
        if one.tpot_ms is not None:
            assert one.ttft_ms + one.tpot_ms * (one.output_tokens - 1) == pytest.approx(one.e2el_ms)


def test_stalled_loop_shows_in_the_requests_that_waited(make_service: MakeService) -> None:
    service = make_service("tiny")
    prefill = service.steps["prefill/32"]

    def slow() -> Any:
        time.sleep(0.05)
        return prefill()

    service.steps["prefill/32"] = slow
    found = served(serve(service, requests(gap_s=0), rate_factor=1, duration_s=1, grace_s=30))
    assert all(one.ttft_ms is not None and one.ttft_ms >= 50 * (index + 1) for index, one in enumerate(found))


def test_arrivals_are_compressed_by_the_rate_and_cut_at_the_duration(make_service: MakeService) -> None:
    document = serve(make_service("tiny"), requests(gap_s=0.1), rate_factor=10, duration_s=0.035, grace_s=30)
    assert [one.arrival_s for one in served(document)] == pytest.approx([0, 0.01, 0.02, 0.03])


def test_request_that_does_not_finish_in_time_is_not_completed(make_service: MakeService) -> None:
    service = make_service("tiny")
    decode = service.steps["decode/1"]

    def slow() -> Any:
        time.sleep(0.1)
        return decode()

    service.steps["decode/1"] = slow
    (one,) = served(serve(service, requests()[2:3], rate_factor=1, duration_s=0.05, grace_s=0.1))
    assert (one.completed, one.tpot_ms, one.e2el_ms) == (False, None, None)
    assert one.ttft_ms is not None


def test_compilation_marks_the_requests_it_hit(make_service: MakeService) -> None:
    service = make_service("tiny")
    decode = service.steps["decode/1"]

    def compiling() -> Any:
        service.instruments["phases"].seconds["dynamo_s"] += 1
        return decode()

    service.steps["decode/1"] = compiling
    document = serve(service, requests()[:1], rate_factor=1, duration_s=1, grace_s=30)
    assert document["num_compiles_during"] == LENGTHS[0][1] - 1
    assert served(document)[0].hit_by == "compile"


@pytest.mark.parametrize("before_s", [0.0, 3.1, 1.7, 12.3])
def test_recordings_are_no_compiles_whatever_was_spent_before(before_s: float, make_service: MakeService) -> None:
    service = make_service("tiny")
    decode, phases = service.steps["decode/1"], service.instruments["phases"]
    phases.seconds |= {"dynamo_s": before_s, "inductor_s": before_s / 3, "record_s": 0.4}

    def recording() -> Any:
        phases.seconds["record_s"] += 0.021
        return decode()

    service.steps["decode/1"] = recording
    document = serve(service, requests()[:1], rate_factor=1, duration_s=1, grace_s=30)
    assert served(document)[0].hit_by == "recording"


def test_energy_needs_both_readings() -> None:
    assert _spent(5.0, 7.5) == 2.5
    assert _spent(5.0, None) is _spent(None, 7.5) is None


def request(**changes: Any) -> ServedRequest:
    defaults: dict[str, Any] = {"request_id": 0, "arrival_s": 0, "prompt_tokens": 1, "output_tokens": 3, "queue_ms": 10, "ttft_ms": 100}
    return ServedRequest(**{**defaults, "tpot_ms": 10, "e2el_ms": 120, "completed": True, **changes})


SLO = {"ttft_ms": 100.0, "tpot_ms": 10.0}


@pytest.mark.parametrize(
    ("changes", "good"),
    [
        ({}, True),
        ({"ttft_ms": 100.1}, False),
        ({"tpot_ms": 10.1}, False),
        ({"tpot_ms": None, "output_tokens": 1}, True),
        ({"completed": False, "tpot_ms": None, "e2el_ms": None}, False),
        ({"completed": False, "ttft_ms": None, "tpot_ms": None, "e2el_ms": None, "queue_ms": None}, False),
    ],
)
def test_request_counts_only_within_every_limit(changes: dict[str, Any], good: bool) -> None:
    assert meets(request(**changes), SLO) == good


def test_goodput_and_attainment_count_requests_sent() -> None:
    sent = [
        request(),
        request(ttft_ms=500, e2el_ms=520, queue_ms=400),
        request(output_tokens=1, tpot_ms=None, e2el_ms=100),
        request(completed=False, tpot_ms=None, e2el_ms=None),
    ]
    document = {
        "requests": [one.model_dump() for one in sent],
        "lateness_ms": [0.1] * 4,
        "num_decode_steps": 6,
        "num_prefill_steps": 4,
        "batch_histogram": {"1": 2, "2": 4},
        "host_us_per_decode_step": 3.0,
        "num_compiles_during": 0,
        "energy_j": None,
        "peak_bytes": 1,
        "busy_s": 1.5,
        "memory_samples": [],
    }
    run = summary(document, "4", 4.0, 2.0, SLO)
    assert (run.num_sent, run.num_completed, run.num_failed) == (4, 3, 1)
    assert (run.request_goodput, run.slo_attainment) == (2 / 2.0, 2 / 4)
    assert (run.ttft_ms.n, run.tpot_ms.n, run.e2el_ms.n, run.queue_ms.n) == (4, 2, 3, 4)
    assert run.queueing_share == pytest.approx((10 + 400 + 10) / (120 + 520 + 100))


def test_steps_that_the_mode_gave_to_the_baseline_are_counted(make_service: MakeService, monkeypatch: pytest.MonkeyPatch) -> None:
    service = make_service("tiny")
    given = {"unsupported_call": 5}  # before the run
    monkeypatch.setattr(service.mode, "counts", lambda: given)
    decode = service.steps["decode/2"]

    def unsupported() -> Any:
        given["unsupported_call"] += 1
        return decode()

    service.steps["decode/2"] = unsupported
    document = serve(service, requests(), rate_factor=1, duration_s=1, grace_s=30)
    assert document["num_baseline_steps"] == document["batch_histogram"]["2"] > 0


def test_requests_that_wait_for_a_garbage_collection_are_named_and_no_compile_is_counted(make_service: MakeService) -> None:
    service = make_service("tiny")
    prefill, held = service.steps["prefill/32"], [[number] for number in range(1_000_000)]

    def collecting() -> Any:
        gc.collect()
        return prefill()

    service.steps["prefill/32"] = collecting
    document = serve(service, requests(), rate_factor=1, duration_s=1, grace_s=60)
    longest = LENGTHS.index((32, 7))
    assert len(held) == 1_000_000
    assert document["requests"][longest]["hit_by"] == "garbage_collection"
    assert document["num_compiles_during"] == 0
    assert document["gc"]["num_full"] >= 1
    assert document["gc"]["longest_ms"] >= 10
    assert summary(document, "2", 2.0, 1.0, SLO).gc is not None
