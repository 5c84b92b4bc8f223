"""How much of a stretch of wall time this process really had a processor."""

from __future__ import annotations

import time
from pathlib import Path

SCHEDULER_FILE = Path("/proc/self/schedstat")


class Stretch:
    """From its making to `shares()`: processor time, and time in the scheduler's queue, as shares of wall time."""

    def __init__(self) -> None:
        """Start now."""
        self._wall_s, self._cpu_s, self._queue_s = time.perf_counter(), time.process_time(), _queue_s()

    def shares(self) -> dict[str, float | None]:
        """`cpu_share` of all threads together, and `queue_share` of the main thread (None where /proc does not count it)."""
        wall_s = max(time.perf_counter() - self._wall_s, 1e-9)
        queue_s = _queue_s()
        waited = None if self._queue_s is None or queue_s is None else (queue_s - self._queue_s) / wall_s
        return {"cpu_share": (time.process_time() - self._cpu_s) / wall_s, "queue_share": waited}


def _queue_s() -> float | None:
    """Seconds that the main thread was ready to run and waited (Linux: second field of schedstat, ns); None without it."""
    try:
        on_cpu, waiting, *_ = map(int, SCHEDULER_FILE.read_text(encoding="utf-8").split())
    except (OSError, ValueError):
        return None
    return waiting / 1e9 if on_cpu else None  # a kernel that does not count says 0
