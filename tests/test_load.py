"""load: rates, the window, and the highest goodput that met the limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stages.core.errors import UserError
from stages.core.partial import Partial
from stages.core.records.load import LoadRun
from stages.load import measure
from stages.workers import load_worker
from stages.workers.measurement import Study
from stages.workers.process import WorkerFailed
from tests.workers.small_study import SmallStudy, write_study


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    return write_study(tmp_path_factory.mktemp("small"), "eager")


ARRIVAL = ("request_id", "arrival_s", "prompt_tokens", "output_tokens")


class Answering:
    """Stands for a worker that serves every request in no time, but misses the limits above a rate."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self.asked: list[dict[str, Any]] = []
        self.starts = 0

    def __call__(self, *_: Any, **__: Any) -> Answering:
        self.starts += 1
        return self

    def __enter__(self) -> Answering:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def ready(self) -> None:
        return None

    def ask(self, activity: str, **arguments: Any) -> dict[str, Any]:
        if activity.endswith(":measure_memory"):
            return {"max_sequences": arguments["device_memory_bytes"] // 100}
        if activity.endswith(":compare"):
            return {"verdict": "correct", "num_requests": len(arguments["sampled"]), "num_tokens": 9, "num_ties": 0, "num_faults": 0}
        self.asked.append(arguments)
        sent = [one for one in arguments["requests"] if one["arrival_s"] / arguments["rate_factor"] <= arguments["duration_s"]]
        late = arguments["rate_factor"] > self.limit
        times = {"queue_ms": 1, "ttft_ms": 5000 if late else 5, "tpot_ms": 1, "e2el_ms": 9, "completed": True}
        counts = dict.fromkeys(("num_decode_steps", "num_prefill_steps", "num_compiles_during", "peak_bytes", "host_us_per_decode_step"), 1)
        return {
            "requests": [{key: one[key] for key in ARRIVAL} | times for one in sent],
            "lateness_ms": [0.1],
            "batch_histogram": {},
            "energy_j": None,
            "busy_s": 0.5,
            "memory_samples": [],
            "max_active": arguments["max_sequences"],
            "sampled": [{"request_id": index, "prompt": [1], "tokens": [2]} for index in range(arguments["num_sampled"])],
            **counts,
        }


def measured(template: SmallStudy, folder: Path, monkeypatch: pytest.MonkeyPatch, limit: float, *rates: Any) -> tuple[Any, Answering]:
    monkeypatch.setenv("OPMODE_BUILD", str(folder))
    worker = Answering(limit)
    monkeypatch.setattr(load_worker, "worker", worker)
    settings = template.study.settings("eager")
    settings.arrival_rates = list(rates)
    return measure(template.study, settings, Partial("key")), worker


def test_rate_compresses_arrivals_and_the_window_ends_with_the_trace(
    template: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = template.study.plan
    twice = 2 * plan.recorded_rate_per_s
    found, worker = measured(template, tmp_path, monkeypatch, 100, "recorded", twice)
    assert [asked["rate_factor"] for asked in worker.asked] == [1.0, pytest.approx(2.0)]
    runs: list[LoadRun] = found.runs
    assert [run.window_s for run in runs] == [pytest.approx(plan.span_s), pytest.approx(plan.span_s / 2)]
    assert [run.request_goodput for run in runs] == [pytest.approx(run.arrival_rate_per_s) for run in runs]
    assert [run.rate for run in runs] == ["recorded", f"{twice:g}"]


@pytest.mark.parametrize(
    ("limit", "factor", "is_lower_bound"),
    [(100.0, 4, True), (2.5, 2, False), (0.5, None, False)],
    ids=["every rate met", "the highest missed", "none met"],
)
def test_maximum_is_the_highest_goodput_that_met_the_limits(
    limit: float, factor: float | None, is_lower_bound: bool, template: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = template.study.plan.recorded_rate_per_s
    found, _ = measured(template, tmp_path, monkeypatch, limit, 2 * recorded, 4 * recorded, "recorded")
    assert found.max_goodput == (pytest.approx(factor * recorded) if factor else None)
    assert found.max_goodput_is_lower_bound == is_lower_bound


def test_rates_measured_before_an_interruption_are_not_measured_again(
    template: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, _ = measured(template, tmp_path, monkeypatch, 100, "recorded")
    second, worker = measured(template, tmp_path, monkeypatch, 100, "recorded", 500)
    assert len(worker.asked) == 1
    assert second.runs[0] == first.runs[0]


def test_window_without_an_arrival_is_a_user_error(template: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Study, "requests", [{"request_id": 0, "arrival_s": 50.0, "prompt_tokens": 1, "output_tokens": 1}])
    with pytest.raises(UserError, match=r"measure.load.duration_s: must let at least one request arrive; got 1.0"):
        measured(template, tmp_path, monkeypatch, 100, "recorded")


def searched(template: SmallStudy, folder: Path, monkeypatch: pytest.MonkeyPatch, limit: float, process: str) -> tuple[Any, Answering]:
    monkeypatch.setenv("OPMODE_BUILD", str(folder))
    worker = Answering(limit)
    monkeypatch.setattr(load_worker, "worker", worker)
    settings = template.study.settings("eager")
    settings.measure.load.search_s, settings.measure.load.process = 5.0, process
    settings.arrival_rates = [template.study.plan.recorded_rate_per_s]
    return measure(template.study, settings, Partial("key")), worker


@pytest.mark.parametrize(("process", "num_seeds"), [("recorded", 1), ("poisson", 2)])
def test_search_finds_the_highest_rate_and_says_what_it_tried(
    process: str, num_seeds: int, template: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = template.study.plan.recorded_rate_per_s
    found, worker = searched(template, tmp_path, monkeypatch, 3.3, process)
    best = max(probe.arrival_rate_per_s for probe in found.search if probe.met)
    assert 3.3 / 1.05 <= best / recorded <= 3.3
    assert not found.max_goodput_is_lower_bound
    assert {probe.seed for probe in found.search if probe.met} == set(range(1, num_seeds + 1))
    assert len(worker.asked) == 1 + len(found.search)


def test_drawn_arrivals_are_the_same_for_every_mode_and_differ_by_seed(
    template: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, first = searched(template, tmp_path / "a", monkeypatch, 3.3, "poisson")
    _, second = searched(template, tmp_path / "b", monkeypatch, 3.3, "poisson")
    assert [asked["requests"] for asked in first.asked] == [asked["requests"] for asked in second.asked]
    one_rate = [asked["requests"] for asked in first.asked if asked["rate_factor"] == first.asked[1]["rate_factor"]]
    assert len(one_rate) == 2
    assert one_rate[0] != one_rate[1]


@pytest.mark.parametrize(("one_worker", "starts"), [(False, 3), (True, 1)])
def test_rates_and_search_share_a_worker_where_asked(
    one_worker: bool, starts: int, template: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPMODE_BUILD", str(tmp_path))
    worker = Answering(3.3)
    monkeypatch.setattr(load_worker, "worker", worker)
    settings = template.study.settings("eager")
    settings.measure.load.search_s, settings.measure.load.one_worker = 5.0, one_worker
    settings.arrival_rates = ["recorded", 2 * template.study.plan.recorded_rate_per_s]
    measure(template.study, settings, Partial("key"))
    assert worker.starts == starts


def limited(template: SmallStudy, folder: Path, monkeypatch: pytest.MonkeyPatch, device_memory_bytes: int | None) -> tuple[Any, Answering]:
    monkeypatch.setenv("OPMODE_BUILD", str(folder))
    worker = Answering(3.3)
    monkeypatch.setattr(load_worker, "worker", worker)
    settings = template.study.settings("eager")
    settings.device_memory_bytes, settings.measure.load.search_s = device_memory_bytes, 5.0
    settings.arrival_rates = ["recorded"]
    return measure(template.study, settings, Partial("key")), worker


def test_a_memory_limit_holds_the_sequences_in_flight_at_every_rate(
    template: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, worker = limited(template, tmp_path, monkeypatch, 3300)
    assert {asked["max_sequences"] for asked in worker.asked} == {33}
    assert len(worker.asked) > 2
    assert [run.max_active for run in found.runs] == [33]
    assert {asked["max_sequences"] for asked in limited(template, tmp_path / "b", monkeypatch, None)[1].asked} == {None}


def test_limit_that_holds_no_sequence_fails_with_the_reason(template: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WorkerFailed, match=r"device_memory_bytes \(99\) holds no sequence in this mode"):
        limited(template, tmp_path, monkeypatch, 99)
