"""Records are read as they were written, and a broken one is one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stages.core import atomic
from stages.core.errors import UserError
from stages.core.records.base import Hashes, read, write
from stages.core.records.correctness import Answers, Check, CorrectnessRecord

RECORD = CorrectnessRecord(
    stage="correctness",
    item="eager",
    status="ok",
    started_at="2026-01-01T00:00:00+00:00",
    ended_at="2026-01-01T00:00:01+00:00",
    command="python -m stages.correctness --mode eager",
    hashes=Hashes(config="1", environment="2", code="3"),
    data=Answers(verdict="correct", checks=[Check(name="a", subject="b", verdict="pass", value=0.1, limit=1, num_calls=6)]),
)


def test_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(tmp_path / "record.json", RECORD)
    assert read(tmp_path / "record.json", CorrectnessRecord) == RECORD


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"status": "fine"}, "status"),
        ({"schema_version": 2}, "schema_version"),
        ({"extra": 1}, "extra"),
        ({"data": {"verdict": "correct"}}, "data.checks"),
        ({"hashes": None}, "hashes"),
    ],
)
def test_record_that_does_not_fit_is_one_line_with_the_place(changes: dict[str, Any], place: str, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    atomic.write_json(file, {**RECORD.model_dump(mode="json"), **changes})
    with pytest.raises(UserError, match=rf"record.json:{place}: .* Delete the record and run dvc repro") as error_info:
        read(file, CorrectnessRecord)
    assert "\n" not in str(error_info.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[]", b"3"])
def test_file_that_is_no_record_is_one_line(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    file.write_bytes(content)
    with pytest.raises(UserError, match=r"record.json"):
        read(file, CorrectnessRecord)
    with pytest.raises(UserError, match=r"must exist; got no such file. Run dvc repro first"):
        read(tmp_path / "nothing.json", CorrectnessRecord)
