"""What a test waits for begins before it: studies in processes of their own run several at once, each test takes its own.

A study on a GPU is mostly a process that starts, compiles and ends: one after the other they take minutes, and none of
them depends on times. `@pytest.mark.ahead(function)`: `function(folder)` runs in a thread, with a folder of its own, once
the first test of the session asks for its result; the fixture `ahead` gives a test what its function returned.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import pytest

AT_ONCE = max(1, min(6, (os.cpu_count() or 1) // 2))
FEW_BYTES = 4 << 30
"""Of the GPU, for the check that sequences fit: a study that filled all of it would leave none to another."""
ONE_AT_A_TIME = Lock()
"""For what a thread does itself: Hydra composes one configuration at a time."""


class Ahead:
    """Results by the test that wants them. Under pytest-xdist each process sees all tests: there nothing begins before it is asked for."""

    def __init__(self, items: Sequence[pytest.Item], folder: Path) -> None:
        """Begin the work of all `items`, in their order."""
        self._folder, self._pool = folder, ThreadPoolExecutor(AT_ONCE)
        self._begun: dict[str, Future[Any]] = {}
        for item in items if "PYTEST_XDIST_WORKER" not in os.environ else ():
            if item.get_closest_marker("ahead") and not item.get_closest_marker("skip"):
                self._begin(item)

    def result(self, item: pytest.Item) -> Any:
        """Wait for a test's own work; raises what that raised."""
        if item.nodeid not in self._begun:
            self._begin(item)
        return self._begun[item.nodeid].result()

    def close(self) -> None:
        """Begin nothing more, and wait for what runs."""
        self._pool.shutdown(cancel_futures=True)

    def _begin(self, item: pytest.Item) -> None:
        mark = item.get_closest_marker("ahead")
        assert mark, f"{item.nodeid} has no mark `ahead`"
        work: Callable[[Path], Any] = mark.args[0]
        place = self._folder / str(len(self._begun))
        place.mkdir()
        self._begun[item.nodeid] = self._pool.submit(work, place)
