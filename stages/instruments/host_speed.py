"""How fast the host runs this thread now: a fixed loop of Python, timed; and a way to a processor that runs it fast, and to stay on one.

On a shared host a processor runs at half its speed for a tenth of a second or for long, with nothing to see in the guest:
no load, no queue, no lost processor time. A step whose launches set its pace takes that much longer.
"""

from __future__ import annotations

import os
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

from stages.core.host_readings import NUM_RECENT, is_slow, usual_us

NUM_TURNS = 2000
FAST_ENOUGH = 1.1
"""Of the usual time: a search ends there."""
FEWEST_READINGS = 50
"""That tell what is usual; with fewer a search reads every processor and takes the fastest."""
MOST_PROCESSORS = 16
"""Tried in one search; a reading takes about 0.2 ms and a move as much."""


class HostSpeed:
    """Readings of one thread, and where it may run: as when it was first moved, whatever became of a move since."""

    def __init__(self) -> None:
        """Nothing read yet."""
        self._recent_us: deque[float] = deque(maxlen=NUM_RECENT)
        self._allowed: set[int] = set()

    def read_us(self) -> float:
        """The loop here and now, us, to a tenth: the best of three, since an interrupt is no slowness."""
        found = round(min(_loop_us() for _ in range(3)), 1)
        self._recent_us.append(found)
        return found

    def is_slow(self, us: float) -> bool:
        """Whether a reading took much longer than is usual."""
        return is_slow(us, usual_us(self._recent_us))

    def move_to_fast(self) -> float:
        """Move this thread to a processor that is fast now, and read there, us. It is not bound: afterwards it may run where it could.

        Only processors of the same NUMA node are tried, so that the way to the device stays what it was; where the node is not
        known, the system refuses, or outside Linux none.
        """
        here = _processor()
        if here is not None:
            with suppress(OSError):  # refused, or a processor was taken away meanwhile
                self._allowed = self._allowed or os.sched_getaffinity(0)
                self._move(here, self._allowed)
        return self.read_us()

    def _move(self, here: int, allowed: set[int]) -> None:
        try:
            os.sched_setaffinity(0, {self._fast_among(_near(here, allowed))})
        finally:
            os.sched_setaffinity(0, allowed)

    def _fast_among(self, processors: list[int]) -> int:
        """The first on which the loop takes about its usual time, else the fastest; all are read until enough is known."""
        found_us: dict[int, float] = {}
        for processor in processors:
            os.sched_setaffinity(0, {processor})
            found_us[processor] = self.read_us()
            if len(self._recent_us) >= FEWEST_READINGS and found_us[processor] <= FAST_ENOUGH * usual_us(self._recent_us):
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
    """This processor, then those after it of its NUMA node that the thread may use, at most `MOST_PROCESSORS`.

    Beginning after this one spreads the processes of a set, which search one after another, over the node.
    """
    node = next(Path(f"/sys/devices/system/cpu/cpu{here}").glob("node[0-9]*"), None)
    others = [processor for processor in allowed - {here} if node and (node / f"cpu{processor}").exists()]
    return [here, *sorted(others, key=lambda processor: (processor < here, processor))][:MOST_PROCESSORS]
