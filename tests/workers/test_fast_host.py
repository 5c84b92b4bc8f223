"""What timing on fast processors is worth: steps on a simulated host whose processors become slow, each for a while."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from statistics import mean, median, pstdev

import pytest

from stages.instruments import host_speed
from stages.instruments.host_speed import HostSpeed
from stages.workers import fast_host
from stages.workers.fast_host import FastHost

NUM_PROCESSORS, SLOW_SHARE, SLOW_S, SLOWDOWN = 16, 0.18, 0.06, 1.8  # as read beside blocks on a shared host
NOISE = 0.05  # mean of what a reading takes more, nothing being slow
STEP_S, LOOP_S, NUM_CALLS, NUM_BLOCKS = 9e-3, 55e-6, 8, 60


class Host:
    """Processors that become slow and fast again by themselves; the thread runs where it was put last."""

    def __init__(self, seed: int, slow_share: float) -> None:
        self.random, self.now_s, self.here, self.slow_share = random.Random(seed), 0.0, 0, slow_share
        self.slow = [self.random.random() < slow_share for _ in range(NUM_PROCESSORS)]
        self.until_s = [self._stretch_s(processor) for processor in range(NUM_PROCESSORS)]

    def _stretch_s(self, processor: int) -> float:
        mean_s = SLOW_S if self.slow[processor] else SLOW_S * (1 - self.slow_share) / max(self.slow_share, 1e-9)
        return self.random.expovariate(1 / mean_s)

    def work_s(self, left_s: float) -> float:
        """How long what takes `left_s` on a fast processor takes here, now."""
        began_s = self.now_s
        while left_s > 0:
            while self.until_s[self.here] <= self.now_s:
                self.slow[self.here] = not self.slow[self.here]
                self.until_s[self.here] += self._stretch_s(self.here)
            slowdown = SLOWDOWN if self.slow[self.here] else 1.0
            done_s = min(left_s, (self.until_s[self.here] - self.now_s) / slowdown)
            self.now_s += done_s * slowdown
            left_s -= done_s
        return self.now_s - began_s

    def loop_us(self) -> float:
        return self.work_s(LOOP_S) * 1e6 * (1 + self.random.expovariate(1 / NOISE))

    def step(self) -> float:
        """Of 1.0 on a fast processor."""
        return self.work_s(STEP_S) / STEP_S

    def set_affinity(self, _: int, processors: set[int]) -> None:
        self.here = self.here if self.here in processors else min(processors)


Simulate = Callable[..., tuple[list[list[float]], int]]


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch) -> Simulate:
    """Blocks of steps, and how many steps were made again; `device` says whether the thread is steered."""

    def simulated(device: str, num_calls: int, seed: int = 1, slow_share: float = SLOW_SHARE) -> tuple[list[list[float]], int]:
        host = Host(seed, slow_share)
        monkeypatch.setattr(os, "sched_setaffinity", host.set_affinity)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(NUM_PROCESSORS)))
        monkeypatch.setattr(host_speed, "_processor", lambda: host.here)
        monkeypatch.setattr(host_speed, "_near", lambda here, allowed: [here, *sorted(allowed - {here})])
        monkeypatch.setattr(host_speed, "_loop_us", host.loop_us)
        monkeypatch.setattr(fast_host, "HOST", HostSpeed())
        blocks, num_repeated = [], 0
        for _ in range(NUM_BLOCKS):
            host.now_s += host.random.uniform(0.5, 2.0)  # other cells have their turn
            beside = FastHost(device)
            blocks.append([beside.timed("step", host.step, host.step) for _ in range(num_calls)])
            num_repeated += len(beside.repeated["step"])
        return blocks, num_repeated

    return simulated


def test_blocks_of_calls_on_fast_processors_differ_by_a_twentieth_of_what_they_did(simulate: Simulate) -> None:
    left, steered = (list(map(median, simulate(device, NUM_CALLS)[0])) for device in ("cpu", "cuda"))
    assert pstdev(left) > 0.1
    assert pstdev(steered) < 0.05 * pstdev(left)
    assert 1.0 <= mean(steered) < 1.001


def test_sums_of_a_sequence_on_fast_processors_are_a_hundredth_too_long_at_most(simulate: Simulate) -> None:
    left, steered = (list(map(mean, simulate(device, 80)[0])) for device in ("cpu", "cuda"))
    assert mean(left) > 1.05
    assert mean(steered) < 1.01
    assert pstdev(steered) < 0.1 * pstdev(left)


def test_on_a_quiet_host_noise_of_the_readings_repeats_one_call_of_two_hundred_at_most(simulate: Simulate) -> None:
    blocks, num_repeated = simulate("cuda", NUM_CALLS, slow_share=0.0)
    assert all(step == pytest.approx(1.0) for block in blocks for step in block)
    assert num_repeated <= NUM_BLOCKS * NUM_CALLS / 200
