"""One measurement at a time: on a GPU of this machine whoever asks, on a CPU in one build folder.

A stage whose pipeline was killed may still run, an orphan. Beside it a second one would share its time and its caches,
and two records of one stage would race, so it is refused.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stages.core import paths
from stages.core.errors import UserError


def lock_file(gpu: str | None) -> Path:
    """The lock of one GPU (by UUID) in the machine's temporary folder; without one that of the build folder."""
    return Path(tempfile.gettempdir()) / f"opmode-{gpu}.lock" if gpu else paths.build() / "measuring.lock"


@contextmanager
def device_lock(gpu: str | None) -> Iterator[None]:
    """Hold the lock of a GPU, or of the CPU (None). Raises UserError at once when another process holds it."""
    with held(lock_file(gpu), f"GPU {gpu} must be free" if gpu else f"one process may measure in {paths.build()} at a time"):
        yield


@contextmanager
def item_lock(stage: str, item: str) -> Iterator[None]:
    """Hold the lock of one stage of one item, whose record and caches only one process may write."""
    with held(paths.build() / "locks" / f"{stage}-{item}.lock", f"one process may measure {stage}@{item} at a time"):
        yield


@contextmanager
def held(place: Path, rule: str) -> Iterator[None]:
    """Hold a lock file; its content is the holder's process number. Raises UserError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().strip()  # none in the moment between its lock and its number
            remedy = f"Wait for it, or end it (kill {holder})." if holder else "Wait for it."
            raise UserError("device", rule, f"locked by process {holder or 'unknown'}", remedy) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            file.truncate(0)  # the number may be another process's by the time that the lock is taken again
