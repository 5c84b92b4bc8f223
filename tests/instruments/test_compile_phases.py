"""Every moment inside the compiler belongs to exactly one phase: the innermost."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from stages.instruments import compile_phases
from stages.instruments.compile_phases import CompilePhases


class Clock:
    """Time that moves when told."""

    now_s = 100.0

    def monotonic(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    fake = Clock()
    monkeypatch.setattr(compile_phases, "time", fake)
    return fake


def after(clock: Clock, seconds: float, action: Any, *arguments: Any) -> None:
    clock.now_s += seconds
    action(*arguments)


def test_inner_region_is_not_counted_for_the_outer_one(clock: Clock) -> None:
    phases = CompilePhases()
    after(clock, 5, phases.begin, "dynamo")
    after(clock, 1, phases.begin, "backend_compile")
    after(clock, 2, phases.begin, "inductor_compile")
    after(clock, 4, phases.begin, "async_compile.wait")
    after(clock, 8, phases.end)
    after(clock, 16, phases.end)
    after(clock, 32, phases.end)
    after(clock, 64, phases.end)
    expected = {"dynamo_s": 1 + 64, "aot_autograd_s": 2 + 32, "inductor_s": 4 + 16, "kernel_compile_s": 8}
    assert (dict(phases.seconds), phases.total_s()) == (expected, 127)


def test_time_outside_every_region_is_nobodys(clock: Clock) -> None:
    phases = CompilePhases()
    after(clock, 1, phases.begin, "dynamo")
    after(clock, 1, phases.end)
    after(clock, 50, phases.begin, "dynamo")
    after(clock, 1, phases.end)
    assert phases.total_s() == 2


def test_region_with_an_unknown_name_counts_for_the_one_around_it(clock: Clock) -> None:
    phases = CompilePhases()
    phases.begin("inductor_compile")
    after(clock, 1, phases.begin, "something new in the next torch")
    after(clock, 2, phases.end)
    after(clock, 4, phases.end)
    assert dict(phases.seconds) == {"inductor_s": 7}


def test_end_without_begin_does_no_harm(clock: Clock) -> None:
    phases = CompilePhases()
    after(clock, 1, phases.end)
    assert phases.total_s() == 0


class Logger:
    """Stands for torch's event logger."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def log_event_start(self, event_name: str, time_ns: int, **_: Any) -> None:
        self.seen.append(f"start {event_name} {time_ns}")

    def log_event_end(self, event_name: str, time_ns: int) -> str:
        self.seen.append(f"end {event_name} {time_ns}")
        return "ended"


def installed(monkeypatch: pytest.MonkeyPatch, logger: type | None) -> CompilePhases:
    import torch._dynamo.utils

    monkeypatch.setattr(torch._dynamo.utils, "ChromiumEventLogger", logger)
    phases = CompilePhases()
    phases.install()
    return phases


def test_events_of_torch_are_followed_and_passed_on(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    class Patched(Logger):
        log_event_start, log_event_end = Logger.log_event_start, Logger.log_event_end

    phases, logger = installed(monkeypatch, Patched), Patched()
    logger.log_event_start("dynamo", 1, metadata={})
    clock.now_s += 3
    assert logger.log_event_end("dynamo", 2) == "ended"  # type: ignore[func-returns-value]
    assert (dict(phases.seconds), logger.seen, phases.missing) == ({"dynamo_s": 3}, ["start dynamo 1", "end dynamo 2"], "")


def test_events_of_other_threads_do_not_disturb_the_stack(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    class Patched(Logger):
        log_event_start, log_event_end = Logger.log_event_start, Logger.log_event_end

    phases, logger = installed(monkeypatch, Patched), Patched()
    logger.log_event_start("dynamo", 1)
    thread = threading.Thread(target=logger.log_event_end, args=("compile_file", 2))
    thread.start()
    thread.join()
    clock.now_s += 3
    logger.log_event_end("dynamo", 3)
    assert (phases.total_s(), len(logger.seen)) == (3, 3)


def test_torch_without_these_names_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "not found" in installed(monkeypatch, None).missing
    assert "not found" in installed(monkeypatch, type("Other", (), {})).missing


def test_regions_are_counted_and_other_threads_have_their_own_time(clock: Clock) -> None:
    phases = CompilePhases()
    after(clock, 1, phases.begin, "fx_codegen_and_compile")
    after(clock, 2, phases.end)
    after(clock, 0, phases.begin_elsewhere)
    after(clock, 3, phases.begin_elsewhere)
    after(clock, 4, phases.end_elsewhere)
    after(clock, 5, phases.end_elsewhere)
    phases.end_elsewhere()
    assert (phases.regions["fx_codegen_and_compile"], phases.pool_s, phases.total_s()) == (1, 3 + 4 + 5, 2)
