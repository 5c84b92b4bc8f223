"""What the serving loop itself costs a decode step: the host's time without the mode's own call and the waiting for the device."""

from __future__ import annotations

import time
from itertools import pairwise
from statistics import fmean, median

from stages.core.records.load import HostWork

_SCHEDULING, _MODE, _SAMPLING, _WAITING, _READING, _BOOKKEEPING = range(6)


class LoopClock:
    """Laps of decode steps, in this order: scheduling, the mode's call, sending tokens, waiting, reading them, bookkeeping."""

    def __init__(self) -> None:
        """No step yet."""
        self._laps: list[float] = []
        self._steps: list[tuple[int, list[float]]] = []

    def start(self) -> None:
        """A step of the loop begins."""
        self._laps = [time.perf_counter()]

    def lap(self) -> None:
        """The next part ends here."""
        self._laps.append(time.perf_counter())

    def finish(self, batch: int) -> None:
        """The last part of a decode step ends here; `batch`: its active sequences."""
        self.lap()
        self._steps.append((batch, self._laps))

    def found(self) -> HostWork | None:
        """Means over the steps, and medians by active batch; None without a step."""
        if not self._steps:
            return None
        parts = [[1e6 * (end - begin) for begin, end in pairwise(laps)] for _, laps in self._steps]
        by_batch: dict[int, list[float]] = {}
        for (batch, _), part in zip(self._steps, parts, strict=True):
            by_batch.setdefault(batch, []).append(_own(part))
        return HostWork(
            scheduling_us=fmean(part[_SCHEDULING] for part in parts),
            sampling_us=fmean(part[_SAMPLING] + part[_READING] for part in parts),
            bookkeeping_us=fmean(part[_BOOKKEEPING] for part in parts),
            by_batch={str(batch): median(values) for batch, values in sorted(by_batch.items())},
        )


def _own(part: list[float]) -> float:
    return part[_SCHEDULING] + part[_SAMPLING] + part[_READING] + part[_BOOKKEEPING]
