"""The host's speed: read by a loop, and a fast processor chosen without being bound to it."""

from __future__ import annotations

import os
import time

import pytest

from stages.core.host_readings import NUM_RECENT
from stages.instruments import host_speed
from stages.instruments.host_speed import FEWEST_READINGS, HostSpeed

EVERY = {0, 1, 2, 3}


class Machine:
    """Four processors with a loop time each; the thread runs where it was moved, wherever it is let."""

    def __init__(self, loop_us: dict[int, float]) -> None:
        self.loop_us, self.here, self.allowed, self.read = loop_us, 0, EVERY, list[int]()

    def set_affinity(self, _: int, processors: set[int]) -> None:
        self.allowed = set(processors)
        self.here = self.here if self.here in processors else min(processors)

    def loop(self) -> float:
        self.read.append(self.here)
        return self.loop_us[self.here]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    found = Machine({0: 60.0, 1: 31.0, 2: 30.0, 3: 58.0})
    monkeypatch.setattr(os, "sched_setaffinity", found.set_affinity)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: found.allowed)
    monkeypatch.setattr(host_speed, "_loop_us", found.loop)
    monkeypatch.setattr(host_speed, "_processor", lambda: found.here)
    monkeypatch.setattr(host_speed, "_near", lambda here, allowed: [here, *sorted(allowed - {here})])
    return found


def test_thread_moves_to_the_fastest_and_is_not_bound_to_it(machine: Machine) -> None:
    speed = HostSpeed()
    assert speed.move_to_fast() == 30.0
    assert (machine.here, machine.allowed) == (2, EVERY)
    assert set(machine.read) == EVERY  # nothing to compare with before: all were read


def knowing(machine: Machine) -> HostSpeed:
    """It read often enough to tell what is usual (30 us), and is on the fastest processor."""
    speed = HostSpeed()
    speed.move_to_fast()
    for _ in range(FEWEST_READINGS):
        speed.read_us()
    machine.read.clear()
    return speed


def test_all_are_read_until_it_is_known_what_is_usual(machine: Machine) -> None:
    speed = HostSpeed()
    speed.move_to_fast()
    machine.read.clear()
    assert speed.move_to_fast() == 30.0
    assert set(machine.read) == EVERY


def test_thread_stays_where_the_loop_takes_its_usual_time(machine: Machine) -> None:
    speed = knowing(machine)
    machine.loop_us[2] = 32.9  # slower than ever, and within a tenth of what is usual
    assert speed.move_to_fast() == 32.9
    assert (machine.here, set(machine.read)) == (2, {2})


def test_thread_leaves_a_processor_that_became_slow_for_the_first_fast_one(machine: Machine) -> None:
    speed = knowing(machine)
    machine.loop_us[2] = 55.0
    assert speed.move_to_fast() == 31.0
    assert (machine.here, machine.allowed, set(machine.read)) == (1, EVERY, {2, 0, 1})


def test_where_all_became_slow_the_least_slow_is_taken(machine: Machine) -> None:
    speed = knowing(machine)
    machine.loop_us |= {0: 61.0, 1: 59.0, 2: 60.0, 3: 58.0}
    assert speed.move_to_fast() == 58.0


@pytest.mark.parametrize(("us", "slow"), [(40.5, False), (40.6, True)])
def test_slow_is_what_takes_over_a_third_more_than_is_usual(us: float, slow: bool, machine: Machine) -> None:
    assert knowing(machine).is_slow(us) == slow


def test_what_is_usual_follows_a_host_that_is_slow_for_good(machine: Machine) -> None:
    speed = knowing(machine)
    machine.loop_us = dict.fromkeys(EVERY, 60.0)
    assert speed.is_slow(60.0)
    for _ in range(NUM_RECENT):
        speed.read_us()
    assert not speed.is_slow(60.0)


def test_thread_that_a_failed_move_left_bound_may_run_everywhere_after_the_next(machine: Machine) -> None:
    speed = knowing(machine)
    machine.allowed = {2}
    speed.move_to_fast()
    assert machine.allowed == EVERY


def test_affinity_survives_a_reading_that_breaks(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr(host_speed, "_loop_us", broken)
    with pytest.raises(KeyboardInterrupt):
        HostSpeed().move_to_fast()
    assert machine.allowed == EVERY


def test_processor_that_was_taken_away_ends_the_search_alone(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    def set_affinity(_: int, processors: set[int]) -> None:
        if processors == {1}:
            raise OSError(22, "Invalid argument")
        machine.set_affinity(0, processors)

    monkeypatch.setattr(os, "sched_setaffinity", set_affinity)
    assert HostSpeed().move_to_fast() == 60.0
    assert machine.allowed == EVERY


def test_system_that_refuses_to_move_a_thread_only_reads(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """As under a filter of system calls (systemd: SystemCallFilter=~@resources)."""

    def refuse(_: int, processors: set[int]) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    assert HostSpeed().move_to_fast() == 60.0


def test_a_reading_is_the_best_of_three_to_a_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([90.0, 30.04, 45.0])
    monkeypatch.setattr(host_speed, "_loop_us", lambda: next(times))
    assert HostSpeed().read_us() == 30.0


def test_real_thread_keeps_its_processors() -> None:
    allowed, began_s = os.sched_getaffinity(0), time.perf_counter()
    assert 1.0 < HostSpeed().move_to_fast() < 1e4
    assert time.perf_counter() - began_s < 1.0
    assert os.sched_getaffinity(0) == allowed
    assert host_speed._processor() in allowed


def test_near_are_processors_of_the_same_node_this_one_first_and_at_most_sixteen() -> None:
    allowed = os.sched_getaffinity(0)
    here = max(allowed)
    near = host_speed._near(here, allowed | {100_000})
    assert near[0] == here
    assert host_speed._near(min(allowed), allowed) == sorted(allowed)[: host_speed.MOST_PROCESSORS]
    assert set(near) <= allowed
    assert host_speed._near(100_000, allowed) == [100_000]  # of an unknown node: it alone


def test_system_without_processors_to_name_only_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_speed, "_processor", lambda: None)
    monkeypatch.setattr(os, "sched_setaffinity", None)
    assert HostSpeed().move_to_fast() > 0
