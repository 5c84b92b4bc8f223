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


def test_a_place_that_can_be_written_is_left_as_it_was(tmp_path: Path) -> None:
    atomic.write_text(tmp_path / "a" / "record.json", "old")
    for name in ("record.json", "new.json"):
        atomic.check_writable(tmp_path / "a" / name)
    assert [(file.name, file.read_text()) for file in (tmp_path / "a").iterdir()] == [("record.json", "old")]


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_a_folder_that_takes_no_file_is_named(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any, **__: Any) -> None:
        raise OSError(number, os.strerror(number), str(tmp_path / ".record.json.x1"))

    monkeypatch.setattr(atomic.tempfile, "NamedTemporaryFile", refused)
    with pytest.raises(OSError, match=os.strerror(number)) as error_info:
        atomic.check_writable(tmp_path / "record.json")
    assert (error_info.value.errno, error_info.value.filename) == (number, str(tmp_path))


def test_something_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "record.json").mkdir()
    (tmp_path / "file").touch()
    for path, what in (("record.json", "Is a directory"), ("file/record.json", "File exists|Not a directory")):
        with pytest.raises(OSError, match=what):
            atomic.check_writable(tmp_path / path)
