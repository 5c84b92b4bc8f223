"""The check of the clocks: it must see a clock that is off, and pass one that is not."""

from __future__ import annotations

import pytest

from stages.core.records.steps import Spin, TimerCheck
from stages.workers.timer_check import check_timers, judged
from tests.workers.conftest import MakeService

SPUN_US = [50_000.0, 50_001.0, 50_000.0]


def spin(how: str, device: float = 1.0, wall: float = 1.0) -> Spin:
    return Spin(how=how, spun_us=SPUN_US, device_us=[us * device for us in SPUN_US], wall_us=[us * wall for us in SPUN_US])


def test_clocks_within_one_percent_agree() -> None:
    found = judged([spin("launched", 1.0004, 1.003), spin("replayed", 1.0002, 1.004)])
    assert found.agrees
    assert found.reason == "both clocks are within 0.40% (200 us) of a kernel that spins for 50 ms, launched and replayed"


@pytest.mark.parametrize(("clock", "how"), [("device", "launched"), ("device", "replayed"), ("wall", "launched"), ("wall", "replayed")])
def test_clock_that_is_off_is_named_with_its_error(clock: str, how: str) -> None:
    spins = [spin(other, **({clock: 1.02} if other == how else {})) for other in ("launched", "replayed")]
    found = judged(spins)
    assert (found.agrees, found.reason) == (False, f"{clock}_us, {how} is off by 2.00%")


def test_single_disturbed_run_is_not_a_wrong_clock() -> None:
    disturbed = spin("launched")
    disturbed.wall_us[1] *= 1.5
    assert judged([disturbed, spin("replayed")]).agrees


def test_cpu_has_no_device_clock_to_check(make_service: MakeService) -> None:
    assert check_timers(make_service("tiny")) is None


@pytest.mark.gpu
def test_clocks_agree_with_a_kernel_that_spins_for_a_known_time_launched_and_replayed(make_service: MakeService) -> None:
    service = make_service("tiny")
    service.device = "cuda"
    document = check_timers(service)
    assert document is not None
    found = TimerCheck(**document)
    assert found.agrees, found.reason
    assert [one.how for one in found.spins] == ["launched", "replayed"]
    assert all(50_000 <= us < 50_100 for one in found.spins for us in one.spun_us)
