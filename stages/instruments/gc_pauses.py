"""Pauses of this process for Python's garbage collector, from `gc.callbacks` (Python documentation, module gc).

A full collection walks every object that Python tracks; compiling leaves hundreds of thousands more. vLLM collects and
calls `gc.freeze` once its engine is ready, so that later collections skip what was there (vllm/utils/gc_utils.py).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

NOTABLE_S = 0.01
FULL_GENERATION = 2


class GcPauses:
    """What was seen so far: `pauses_s`, each collection's seconds, `num_full`, those of all generations."""

    def __init__(self) -> None:
        """Nothing yet."""
        self.pauses_s: list[float] = []
        self.num_full = 0
        self._began_s = 0.0
        self._num_told = 0

    def note(self, phase: str, about: Mapping[str, Any]) -> None:
        """The collector's callback: `start` and `stop` of one collection."""
        if phase == "start":
            self._began_s = time.perf_counter()
            return
        self.pauses_s.append(time.perf_counter() - self._began_s)
        self.num_full += about["generation"] == FULL_GENERATION

    def notable_since(self) -> bool:
        """Whether a pause of 10 ms or more came since the last time somebody asked."""
        new, self._num_told = self.pauses_s[self._num_told :], len(self.pauses_s)
        return any(pause_s >= NOTABLE_S for pause_s in new)

    def found(self) -> dict[str, Any]:
        """For a record: full collections, the longest pause and all of them together, in ms."""
        times_ms = [1e3 * pause_s for pause_s in self.pauses_s]
        return {"num_full": self.num_full, "longest_ms": max(times_ms, default=0.0), "total_ms": sum(times_ms)}


@contextmanager
def watched(freeze: bool = False) -> Iterator[GcPauses]:
    """The pauses while the block runs. `freeze`: collect before it, then leave all that exists out of later collections."""
    if freeze:
        gc.collect()
        gc.freeze()
    pauses = GcPauses()
    gc.callbacks.append(pauses.note)
    try:
        yield pauses
    finally:
        gc.callbacks.remove(pauses.note)
