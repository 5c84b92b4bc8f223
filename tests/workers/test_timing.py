"""Timed blocks and the sampled sequence: what is run, and what voids it."""

from __future__ import annotations

import time
from collections import Counter
from statistics import median
from typing import Any

import pytest

from stages.core.records.plan import Plan, Request
from stages.instruments.clocks import wall_us
from stages.instruments.compiler_log import CompilerLog
from stages.traces.planning import PlanSettings, plan
from stages.workers import fast_host, timing
from stages.workers.fast_host import MOST_ATTEMPTS
from stages.workers.service import Service
from stages.workers.timing import SETTLING_CALLS, sampled_steps, time_block, time_sequence
from stages.workers.walking import walk
from tests.workers.conftest import MakeService

SETTINGS = {"virtual_decode_step_ms": 5.0, "virtual_prefill_us_per_token": 10.0, "policy": "prefill_first"}


class Requests:
    """A trace of requests that come one after another."""

    name = "ramp"

    def __init__(self, count: int) -> None:
        self.count = count

    def files(self) -> list[Any]:
        return []

    def requests(self) -> list[Request]:
        return [Request(request_id=i, arrival_s=i * 0.004, prompt_tokens=4 + i % 9, output_tokens=2 + i % 5) for i in range(self.count)]


@pytest.fixture
def service(make_service: MakeService) -> Service:
    return make_service("tiny")


def planned(service: Service, count: int) -> tuple[Plan, list[dict[str, Any]]]:
    """Plan the trace for the service."""
    service.plan, requests = plan(Requests(count), service.model, PlanSettings(**SETTINGS))  # type: ignore[arg-type]
    return service.plan, [request.model_dump() for request in requests]


def counted(service: Service) -> list[str]:
    """The shapes that the service runs from now on, in order."""
    ran: list[str] = []
    run = service.run

    def counting(shape: str) -> Any:
        ran.append(shape)
        return run(shape)

    service.run = counting  # type: ignore[method-assign]
    return ran


def test_block_settles_then_times_every_call_and_a_burst(service: Service) -> None:
    ran = counted(service)
    block = time_block(service, "decode/2", num_calls=4, pipelined_calls=5, context_tokens=16)
    assert ran == ["decode/2"] * (SETTLING_CALLS + 4 + 5)
    assert (len(block["wall_us"]), block["device_us"], block["voided"]) == (4, [], "")
    assert min(block["wall_us"]) > 0
    assert block["pipelined_us"] > 0
    before_us, after_us = block["host_loop_us"]
    assert min(before_us, after_us) > 0


def test_compilation_inside_voids_a_block(service: Service) -> None:
    step = service.steps["decode/1"]

    def compiling() -> Any:
        service.instruments["phases"].seconds["dynamo_s"] += 0.5
        return step()

    service.steps["decode/1"] = compiling
    assert "the compiler ran for" in time_block(service, "decode/1", 2, 2, 16)["voided"]


class Replays:
    """A counter that stands for graphs: `num` rises by what each step says."""

    num = 0


def replaying(service: Service, shape: str, every: int) -> Replays:
    """Every so many calls of a shape count as a replay."""
    replays, step, calls = Replays(), service.steps[shape], iter(range(1_000_000))

    def replayed() -> Any:
        replays.num += next(calls) % every == 0
        return step()

    service.steps[shape] = replayed
    service.instruments["replays"] = replays
    return replays


def test_step_that_is_no_replay_voids_a_block_of_a_mode_that_replays(service: Service) -> None:
    replaying(service, "decode/1", every=2)
    assert time_block(service, "decode/1", 3, 2, 16)["voided"] == "4 replays in 8 steps of a mode that replays"


def test_block_whose_every_step_is_a_replay_counts(service: Service) -> None:
    replays = replaying(service, "decode/1", every=1)
    assert time_block(service, "decode/1", 3, 2, 16)["voided"] == ""
    assert replays.num == SETTLING_CALLS + 3 + 2


def test_whole_sequence_is_run_when_it_is_short_enough(service: Service) -> None:
    made, requests = planned(service, 6)
    steps = sampled_steps(service, requests, 10_000, SETTINGS)
    assert len(steps) == made.num_steps
    assert sum(shape.startswith("decode") for shape, _ in steps) == made.num_decode_steps
    assert all(size <= int(shape.partition("/")[2]) for shape, size in steps)


@pytest.mark.parametrize("num_steps", [10, 25, 50, 100])
def test_long_sequence_is_sampled_in_windows_from_its_first_to_its_last_step(service: Service, num_steps: int) -> None:
    made, requests = planned(service, 60)
    every = sampled_steps(service, requests, 10_000, SETTINGS)
    steps = sampled_steps(service, requests, num_steps, SETTINGS)
    assert made.num_steps > 100
    assert 0 < len(steps) <= num_steps
    assert len(steps) >= num_steps // 10 * 10 * 0.8
    assert (steps[0], steps[-1]) == (every[0], every[-1])


def test_sequence_runs_exactly_the_sampled_steps(service: Service) -> None:
    _, requests = planned(service, 60)
    expected = [shape for shape, _ in sampled_steps(service, requests, 30, SETTINGS)]
    ran = counted(service)
    found = time_sequence(service, requests, 30, SETTINGS, context_tokens=16)
    assert ran == expected
    assert (found["num_steps"], found["voided"]) == (len(expected), "")
    assert found["num_decode_steps"] == sum(shape.startswith("decode") for shape in expected)
    assert found["sequence_s"] > 0


class Host:
    """What it was asked for, in order. A reading is how many there are; those in `slow` are slow."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.slow: set[float] = set()

    def read_us(self) -> float:
        self.asked.append("read")
        return float(len(self.asked))

    def move_to_fast(self) -> float:
        self.asked.append("move")
        return float(len(self.asked))

    def is_slow(self, us: float) -> bool:
        return us in self.slow


@pytest.fixture
def as_on_a_gpu(service: Service, monkeypatch: pytest.MonkeyPatch) -> Host:
    """The service's own steps, timed as on a GPU (a CPU has no device events)."""
    host = Host()
    monkeypatch.setattr(fast_host, "HOST", host)
    monkeypatch.setattr(timing, "device_us", lambda call: wall_us(call, lambda: None))
    monkeypatch.setattr(service, "device", "cuda")
    monkeypatch.setattr(service, "synchronize", lambda: None)
    return host


def test_on_a_gpu_the_host_is_read_after_everything_that_is_timed(service: Service, as_on_a_gpu: Host) -> None:
    block = time_block(service, "decode/2", num_calls=4, pipelined_calls=5, context_tokens=16)
    assert as_on_a_gpu.asked == ["move", *["read"] * (1 + 4 + 4 + 1), "read"]  # settled, by clock, by events, burst; the end
    assert block["host_loop_us"] == [float(number) for number in range(1, 13)]
    assert block["repeated_us"] == {}


def test_what_a_slow_host_spoiled_is_made_again_elsewhere_after_a_call_that_counts_in_nothing(service: Service, as_on_a_gpu: Host) -> None:
    ran = counted(service)
    as_on_a_gpu.slow = {3.0, 9.0}  # after the first call by clock, after the burst (two moves lie before it)
    block = time_block(service, "decode/2", num_calls=2, pipelined_calls=5, context_tokens=16)
    assert as_on_a_gpu.asked == ["move", "read", "read", "move", *["read"] * 5, "move", "read", "read"]
    assert {name: len(times) for name, times in block["repeated_us"].items()} == {"wall_us": 1, "pipelined_us": 1}
    assert (len(block["wall_us"]), len(block["device_us"])) == (2, 2)
    assert len(ran) == SETTLING_CALLS + (2 + 1 + 1) + 2 + (5 + 1 + 5)


def test_on_a_host_that_is_slow_throughout_the_last_attempt_counts(service: Service, as_on_a_gpu: Host) -> None:
    as_on_a_gpu.slow = {float(number) for number in range(1_000)}
    block = time_block(service, "decode/2", num_calls=2, pipelined_calls=5, context_tokens=16)
    again = MOST_ATTEMPTS - 1
    assert {name: len(times) for name, times in block["repeated_us"].items()} == {
        "wall_us": 2 * again,
        "device_us": 2 * again,
        "pipelined_us": again,
    }
    assert (len(block["wall_us"]), len(block["device_us"])) == (2, 2)


def test_repeated_calls_of_a_mode_that_replays_must_be_replays_too(service: Service, as_on_a_gpu: Host) -> None:
    as_on_a_gpu.slow = {3.0}
    replays = replaying(service, "decode/1", every=1)
    assert time_block(service, "decode/1", 2, 5, 16)["voided"] == ""
    assert replays.num == SETTLING_CALLS + (2 + 1 + 1) + 2 + 5
    as_on_a_gpu.asked.clear()
    replaying(service, "decode/1", every=2)
    assert time_block(service, "decode/1", 2, 5, 16)["voided"] == "7 replays in 14 steps of a mode that replays"


def test_on_a_gpu_the_host_is_read_between_the_steps_of_the_sequence(service: Service, as_on_a_gpu: Host) -> None:
    _, requests = planned(service, 60)
    found = time_sequence(service, requests, 30, SETTINGS, context_tokens=16)
    assert as_on_a_gpu.asked == ["move", *["read"] * found["num_steps"]]
    assert len(found["host_loop_us"]) == found["num_steps"] + 1


def test_step_of_the_sequence_that_a_slow_host_spoiled_is_made_again_in_its_place(service: Service, as_on_a_gpu: Host) -> None:
    _, requests = planned(service, 60)
    expected = [shape for shape, _ in sampled_steps(service, requests, 30, SETTINGS)]
    ran = counted(service)
    as_on_a_gpu.slow = {3.0}  # after the second step
    found = time_sequence(service, requests, 30, SETTINGS, context_tokens=16)
    assert ran == [*expected[:2], expected[1], expected[1], *expected[2:]]
    assert (found["num_steps"], len(found["repeated_s"]), found["voided"]) == (len(expected), 1, "")


def test_what_is_not_timed_is_in_no_time_and_no_share(service: Service, as_on_a_gpu: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(as_on_a_gpu, "read_us", lambda: time.sleep(0.05) or 1.0)
    _, requests = planned(service, 60)
    found = time_sequence(service, requests, 20, SETTINGS, context_tokens=16)
    block = time_block(service, "decode/2", num_calls=4, pipelined_calls=5, context_tokens=16)
    assert found["sequence_s"] < 0.05 * found["num_steps"] / 2
    assert median([*block["wall_us"], *block["device_us"]]) < 25_000
    assert block["cpu_share"] > 0.5  # with the readings, which sleep here, it is under 0.1


class Counters:
    """Stands for the class-level counters: every call of the service is a compiled call."""

    def __init__(self, ran: list[str]) -> None:
        self.ran = ran
        self.backends = {"0/0": "eager"}
        self.missing: list[str] = []

    def snapshot(self) -> Counter[str]:
        return Counter(compiled_call=len(self.ran))


def test_walk_serves_the_planned_steps_in_order_with_their_padded_sizes(service: Service) -> None:
    made, requests = planned(service, 20)
    service.instruments |= {"counters": Counters(counted(service)), "log": CompilerLog()}
    found = walk(service, requests, 10_000, SETTINGS)
    assert {run["path"] for run in found["path_runs"]} == {"compiled"}
    walked = [(run["phase"], run["padded_size"]) for run in found["path_runs"] for _ in range(run["count"])]
    assert walked == [(run.phase, run.padded_size) for run in made.runs for _ in range(run.count)]
    assert found["counts"] == {"compiled_call": made.num_steps}


def test_walk_stops_where_it_is_told(service: Service) -> None:
    _, requests = planned(service, 20)
    service.instruments |= {"counters": Counters(counted(service)), "log": CompilerLog()}
    assert sum(run["count"] for run in walk(service, requests, 17, SETTINGS)["path_runs"]) == 17
