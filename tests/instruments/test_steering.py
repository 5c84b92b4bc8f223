"""What staying on fast processors is worth: eager-like steps on a simulated host whose processors become slow, each for a while."""

from __future__ import annotations

import os
import random
from statistics import mean, median, pstdev

import pytest

from stages.instruments import host_speed
from stages.instruments.host_speed import HostSpeed

NUM_PROCESSORS, SLOW_SHARE, SLOW_S, SLOWDOWN = 16, 0.18, 0.06, 1.8  # as read beside blocks on a shared host
STEP_S, LOOP_S, NUM_CALLS, NUM_BLOCKS = 9e-3, 55e-6, 8, 60


class Host:
    """Processors that become slow and fast again by themselves; the thread runs where it was put last."""

    def __init__(self, seed: int) -> None:
        self.random, self.now_s, self.here = random.Random(seed), 0.0, 0
        self.slow = [self.random.random() < SLOW_SHARE for _ in range(NUM_PROCESSORS)]
        self.until_s = [self._stretch_s(processor) for processor in range(NUM_PROCESSORS)]

    def _stretch_s(self, processor: int) -> float:
        mean_s = SLOW_S if self.slow[processor] else SLOW_S * (1 - SLOW_SHARE) / SLOW_SHARE
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

    def set_affinity(self, _: int, processors: set[int]) -> None:
        self.here = self.here if self.here in processors else min(processors)


def medians(monkeypatch: pytest.MonkeyPatch, seed: int, stays: bool) -> list[float]:
    """Of blocks that begin on a fast processor, in steps on a fast one; between its calls the thread stays on such, or where it is."""
    host, speed = Host(seed), HostSpeed()
    monkeypatch.setattr(os, "sched_setaffinity", host.set_affinity)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(NUM_PROCESSORS)))
    monkeypatch.setattr(host_speed, "_processor", lambda: host.here)
    monkeypatch.setattr(host_speed, "_near", lambda here, allowed: [here, *sorted(allowed - {here})])
    monkeypatch.setattr(host_speed, "_loop_us", lambda: host.work_s(LOOP_S) * 1e6)
    found = []
    for _ in range(NUM_BLOCKS):
        host.now_s += host.random.uniform(0.5, 2.0)  # other cells have their turn
        speed.move_to_fast()
        calls = []
        for _ in range(NUM_CALLS):
            calls.append(host.work_s(STEP_S) / STEP_S)
            speed.stay_on_fast() if stays else speed.read_us()
        found.append(median(calls))
    return found


def test_blocks_that_stay_on_fast_processors_differ_by_a_tenth_of_what_they_did(monkeypatch: pytest.MonkeyPatch) -> None:
    left, kept = (medians(monkeypatch, seed=1, stays=stays) for stays in (False, True))
    assert pstdev(left) > 0.1
    assert pstdev(kept) < 0.1 * pstdev(left)
    assert 1.0 <= mean(kept) < 1.005
