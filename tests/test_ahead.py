"""Work that tests wait for begins together, each in a folder of its own, and each test gets its own result or error."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import ahead
from tests.ahead import Ahead


def item(name: str, work: Callable[[Path], Any] | None = None, *, skipped: bool = False) -> Any:
    marks = {"ahead": SimpleNamespace(args=(work,)) if work else None, "skip": skipped or None}
    return SimpleNamespace(nodeid=name, get_closest_marker=marks.get)


def test_work_of_all_tests_runs_at_once_and_each_takes_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "AT_ONCE", 2)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    together = threading.Barrier(2, timeout=30)

    def work(folder: Path) -> Path:
        together.wait()
        assert folder.is_dir()
        return folder

    items = [item("first", work), item("none"), item("skipped", work, skipped=True), item("second", work)]
    begun = Ahead(items, tmp_path)
    found = [begun.result(items[0]), begun.result(items[3])]
    begun.close()
    assert len(set(found)) == 2
    assert sorted(found) == sorted(tmp_path.iterdir())


def test_what_the_work_raises_is_raised_in_its_test_alone(tmp_path: Path) -> None:
    def breaks(_: Path) -> None:
        raise ValueError("no such mode")

    items = [item("breaks", breaks), item("works", lambda _: 3)]
    begun = Ahead(items, tmp_path)
    with pytest.raises(ValueError, match="no such mode"):
        begun.result(items[0])
    assert begun.result(items[1]) == 3
    begun.close()


def test_nothing_begins_before_it_is_asked_for_where_each_process_sees_all_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw0")
    asked: list[str] = []
    items = [item("mine", lambda _: asked.append("mine")), item("anothers", lambda _: asked.append("anothers"))]
    begun = Ahead(items, tmp_path)
    begun.result(items[0])
    begun.close()
    assert asked == ["mine"]
