"""One study at a time on a GPU: a machine-wide lock file, held while a stage works on the device."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stages.core.errors import UserError


def lock_file(gpu: str) -> Path:
    """The lock of one GPU (by UUID) in the machine's temporary folder."""
    return Path(tempfile.gettempdir()) / f"opmode-{gpu}.lock"


@contextmanager
def device_lock(gpu: str | None) -> Iterator[None]:
    """Hold the lock of a GPU; nothing on a CPU. Raises UserError at once when another study holds it."""
    if gpu is None:
        yield
        return
    with lock_file(gpu).open("a+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise UserError(
                "device", f"GPU {gpu} must be free", f"locked by process {holder}", "Wait for that study, or end it."
            ) from error
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield
