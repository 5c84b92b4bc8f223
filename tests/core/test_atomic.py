"""A file is the old version or the new one, also when the disk is full."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path
from typing import Any

import pytest

from stages.core import atomic


def full_disk(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "record.json")


def test_text_is_written_whole_into_folders_that_were_not_there(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "record.json"
    atomic.write_text(file, "né\n")
    assert file.read_text(encoding="utf-8") == "né\n"
    assert file.stat().st_mode & 0o777 == 0o644


def test_keys_are_sorted_so_that_equal_documents_are_equal_bytes(tmp_path: Path) -> None:
    atomic.write_json(tmp_path / "one.json", {"b": 1, "a": 2})
    atomic.write_json(tmp_path / "two.json", {"a": 2, "b": 1})
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "two.json").read_bytes()


@pytest.mark.parametrize("breaks", ["fsync", "replace"])
def test_full_disk_keeps_the_old_version_and_leaves_nothing_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, breaks: str) -> None:
    file = tmp_path / "record.json"
    atomic.write_text(file, "old")
    monkeypatch.setattr(os, breaks, full_disk)
    with pytest.raises(OSError, match="No space left"):
        atomic.write_text(file, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]
    assert file.read_text() == "old"


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_number_that_json_does_not_have_is_refused(tmp_path: Path, value: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        atomic.write_json(tmp_path / "record.json", {"value": value})
    assert list(tmp_path.iterdir()) == []
