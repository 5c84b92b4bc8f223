"""How much of some stretches of wall time this process really had a processor."""

from __future__ import annotations

import math
import time
from pathlib import Path
from types import TracebackType

SCHEDULER_FILE = Path("/proc/self/schedstat")


class Stretch:
    """The time inside its `with` blocks: processor time, and time in the scheduler's queue, as shares of wall time."""

    def __init__(self) -> None:
        """Nothing yet."""
        self._spent_s = [0.0, 0.0, 0.0]

    def __enter__(self) -> Stretch:
        self._began_s = _clocks_s()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._spent_s = [spent + now - began for spent, now, began in zip(self._spent_s, _clocks_s(), self._began_s, strict=True)]

    def shares(self) -> dict[str, float | None]:
        """`cpu_share` of all threads together, and `queue_share` of the main thread (None where /proc does not count it)."""
        wall_s, cpu_s, queue_s = self._spent_s
        wall_s = max(wall_s, 1e-9)
        return {"cpu_share": cpu_s / wall_s, "queue_share": None if math.isnan(queue_s) else queue_s / wall_s}


def _clocks_s() -> tuple[float, float, float]:
    """Wall time, processor time, time in the queue."""
    return time.perf_counter(), time.process_time(), _queue_s()


def _queue_s() -> float:
    """Seconds that the main thread was ready to run and waited (Linux: second field of schedstat, ns); not a number without it."""
    try:
        on_cpu, waiting, *_ = map(int, SCHEDULER_FILE.read_text(encoding="utf-8").split())
    except (OSError, ValueError):
        return math.nan
    return waiting / 1e9 if on_cpu else math.nan  # a kernel that does not count says 0
