"""Calls timed while the host is fast: one that met a slow stretch of its processor is made again on another, and kept aside."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from stages.instruments.contention import Stretch
from stages.instruments.host_speed import HostSpeed

MOST_ATTEMPTS = 3  # at what is timed once; the last counts as it is
HOST = HostSpeed()
"""Of this process: what all its blocks have seen."""


class FastHost:
    """The host beside the calls of one block or pass, read outside their times.

    It moves the thread on a GPU alone, where one thread launches the steps; on a CPU they run on all processors, so that
    there is none to choose. `loop_us`: its readings. `repeated`: by name, what was timed and made again. `num_calls`: all
    that were made. `stretch`: the time inside what was timed.
    """

    def __init__(self, device: str) -> None:
        """Begin on a fast processor."""
        self._steers = device == "cuda"
        self.loop_us = [HOST.move_to_fast() if self._steers else HOST.read_us()]
        self.repeated: dict[str, list[float]] = defaultdict(list)
        self.num_calls, self.stretch = 0, Stretch()

    def timed(self, name: str, measure: Callable[[], float], untimed: Callable[[], Any], num_calls: int = 1) -> float:
        """What `measure` says of `num_calls` calls, after which the host is fast; after `MOST_ATTEMPTS` what the last said."""
        found = self._once(measure, num_calls)
        for _ in range(MOST_ATTEMPTS - 1):
            if not self.leaves_slow(untimed):
                return found
            self.repeated[name].append(found)
            found = self._once(measure, num_calls)
        self.leaves_slow(untimed)
        return found

    def ended_us(self) -> list[float]:
        """The readings, with one at the end."""
        return [*self.loop_us, HOST.read_us()]

    def leaves_slow(self, untimed: Callable[[], Any]) -> bool:
        """Whether the processor was slow just now. The thread is on another then, where it made one `untimed` call and its wait."""
        if not self._steers:
            return False
        self.loop_us.append(HOST.read_us())
        slow = HOST.is_slow(self.loop_us[-1])
        if slow:
            HOST.move_to_fast()
            untimed()
            self.num_calls += 1
        return slow

    def _once(self, measure: Callable[[], float], num_calls: int) -> float:
        self.num_calls += num_calls
        with self.stretch:
            return measure()
