"""How fast the host runs this thread now: a fixed loop of Python, timed; and a way to a processor that runs it fast, and to stay on one.

On a shared host a processor runs at half its speed for a tenth of a second or for long, with nothing to see in the guest:
no load, no queue, no lost processor time. A step whose launches set its pace takes that much longer.
"""

from __future__ import annotations

import math
import os
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

from stages.core.host_readings import is_slow, usual_us

NUM_TURNS = 2000
FAST_ENOUGH = 1.05
"""Of the fastest reading so far."""
MOST_PROCESSORS = 16
"""Tried in one search; a reading takes about 0.2 ms and a move as much."""
RECENT = 500
"""Readings that say what is usual now."""


class HostSpeed:
    """Readings of one thread. `fastest_us`: the least so far, infinite before the first."""

    def __init__(self) -> None:
        """Nothing read yet."""
        self.fastest_us = math.inf
        self._recent_us: deque[float] = deque(maxlen=RECENT)

    def read_us(self) -> float:
        """The loop here and now, us: the best of three, since an interrupt is no slowness."""
        found = min(_loop_us() for _ in range(3))
        self.fastest_us = min(self.fastest_us, found)
        self._recent_us.append(found)
        return found

    def stay_on_fast(self) -> float:
        """Between two calls: the loop here and now, us. From a processor that has become slow the thread moves to a fast one."""
        found = self.read_us()
        if is_slow(found, usual_us(self._recent_us)):
            self.move_to_fast()
        return found

    def move_to_fast(self) -> float:
        """Move this thread to a processor that is fast now, and read there, us. It is not bound: afterwards it may run where it could.

        Only processors of the same NUMA node are tried, so that the way to the device stays what it was; where the node is not
        known, the system refuses, or outside Linux none.
        """
        here = _processor()
        if here is not None:
            with suppress(OSError):  # refused, or a processor was taken away meanwhile
                self._move(here, os.sched_getaffinity(0))
        return self.read_us()

    def _move(self, here: int, allowed: set[int]) -> None:
        try:
            os.sched_setaffinity(0, {self._fast_among(_near(here, allowed))})
        finally:
            os.sched_setaffinity(0, allowed)

    def _fast_among(self, processors: list[int]) -> int:
        """The first that is about as fast as any was before, else the fastest of these; without a reading before all are read."""
        before_us, found_us = self.fastest_us, {}
        for processor in processors:
            os.sched_setaffinity(0, {processor})
            found_us[processor] = self.read_us()
            if found_us[processor] <= FAST_ENOUGH * before_us and before_us < math.inf:
                return processor
        return min(found_us, key=lambda processor: found_us[processor])


def _loop_us() -> float:
    total, began_ns = 0, time.perf_counter_ns()
    for turn in range(NUM_TURNS):
        total += turn
    return (time.perf_counter_ns() - began_ns) / 1e3


def _processor() -> int | None:
    """The processor that this thread runs on (Linux: proc(5), `processor` of stat); None elsewhere."""
    try:
        return int(Path("/proc/thread-self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[36])
    except (OSError, ValueError, IndexError):
        return None


def _near(here: int, allowed: set[int]) -> list[int]:
    """This processor, then others of its NUMA node that the thread may use, at most `MOST_PROCESSORS`."""
    node = next(Path(f"/sys/devices/system/cpu/cpu{here}").glob("node[0-9]*"), None)
    others = [processor for processor in sorted(allowed - {here}) if node and (node / f"cpu{processor}").exists()]
    return [here, *others][:MOST_PROCESSORS]
