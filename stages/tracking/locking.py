"""One publisher at a time: two would each find a run missing and make it twice."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager

from stages.core import paths
from stages.core.errors import UserError

WAIT_S = 60.0
_POLL_S = 0.2


@contextmanager
def publishing_lock(wait_s: float = WAIT_S) -> Iterator[None]:
    """Hold the project's publishing lock; a dead holder's is free. Raises UserError after `wait_s`."""
    file = paths.build() / "publish.lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as handle:
        give_up = time.monotonic() + wait_s
        while not _locked(handle.fileno()):
            if time.monotonic() > give_up:
                raise UserError(str(file), f"must be free within {wait_s:g} s", "held by another publish", "Let that one end.")
            time.sleep(_POLL_S)
        yield


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
