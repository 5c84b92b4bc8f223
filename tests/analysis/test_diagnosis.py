"""What can be saved at most, and when not to bother."""

from __future__ import annotations

import pytest

from stages.analysis import diagnosis
from stages.analysis.bottleneck import CPU, GPU
from stages.analysis.diagnosis import Point, diagnosed, lines
from stages.core.records.path import ProfiledStep
from tests.analysis.test_bottleneck import profiled


def point(num_steps: int, wall_us: float, busy_us: float, floor_us: float | None, size: int = 1, phase: str = "decode") -> Point:
    profile: ProfiledStep = profiled(wall_us, busy_us, python=wall_us - busy_us).model_copy(update={"size": size, "phase": phase})
    return Point(num_steps, wall_us, profile, floor_us)


def test_ceilings_are_sums_over_the_plans_steps() -> None:
    found = diagnosed([point(1000, 1000.0, 200.0, 150.0), point(500, 2000.0, 1000.0, 400.0, size=8)], GPU, can_replay=True)
    assert found.wall_s == pytest.approx(2.0)
    assert found.replay_s == pytest.approx(0.8 + 0.5)
    assert found.kernels_s == pytest.approx(0.05 + 0.3)
    assert found.with_floor


def test_bottleneck_is_that_of_the_shape_that_takes_most_time() -> None:
    found = diagnosed([point(10, 1000.0, 900.0, 800.0), point(1000, 1000.0, 100.0, 90.0, size=8)], GPU, can_replay=True)
    assert found.name == "python_bound"
    assert found.sentence.startswith("decode at batch 8")


@pytest.mark.parametrize(
    ("busy_us", "floor_us", "advice"),
    [
        (950.0, 900.0, "do not bother: no operating mode can save 10%"),
        (200.0, 190.0, "measure replay; do not bother with compile"),
        (950.0, 500.0, "measure compile; do not bother with replay"),
        (500.0, 350.0, "measure replay first, then compile: both ceilings are worth it"),
        (700.0, 200.0, "measure compile first, then replay: both ceilings are worth it"),
    ],
)
def test_advice_follows_the_two_ceilings(busy_us: float, floor_us: float, advice: str) -> None:
    assert diagnosed([point(1, 1000.0, busy_us, floor_us)], GPU, can_replay=True).advice == advice


def test_shape_without_a_floor_makes_the_ceiling_looser_and_says_so() -> None:
    found = diagnosed([point(1, 1000.0, 300.0, 200.0), point(1, 1000.0, 300.0, None, phase="prefill")], GPU, can_replay=True)
    assert (found.kernels_s, found.with_floor) == (pytest.approx(0.0004), False)
    assert lines(found, can_replay=True)[2] == "kernels      can save less than 20%: it is busy time, how near its floor is not known"


def test_device_that_cannot_replay_is_not_told_to() -> None:
    found = diagnosed([point(1, 1000.0, 300.0, None)], CPU, can_replay=False)
    assert found.advice.startswith("no mode replays on this device")
    assert "(if it could run here)" in lines(found, can_replay=False)[1]


def test_profile_that_is_busier_than_the_wall_leaves_nothing_to_replay() -> None:
    found = diagnosed([point(1, 1000.0, 1300.0, 950.0)], GPU, can_replay=True)
    assert (found.replay_s, found.kernels_s) == (0.0, pytest.approx(50e-6))
    assert found.advice.startswith("do not bother")
    assert diagnosis.WORTH_SHARE == 0.10
