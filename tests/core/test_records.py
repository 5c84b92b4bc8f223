"""Records are read as they were written, and a broken one is one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stages.core import atomic
from stages.core.errors import UserError
from stages.core.records.base import Hashes, read, read_environment, write
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


@pytest.mark.parametrize("changes", [{"data": None}, {"status": "failed"}])
def test_a_record_has_data_exactly_when_it_is_ok(changes: dict[str, Any], tmp_path: Path) -> None:
    atomic.write_json(tmp_path / "record.json", RECORD.model_dump(mode="json") | changes)
    with pytest.raises(UserError, match=r"data must be there exactly when status is ok; .*dvc repro"):
        read(tmp_path / "record.json", CorrectnessRecord)


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_is_none_is_refused(constant: str, tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    file.write_text(RECORD.model_dump_json().replace("0.1", constant))
    with pytest.raises(UserError, match=f"must be JSON; got {constant} is no JSON number"):
        read(file, CorrectnessRecord)


@pytest.mark.parametrize("content", ["null", "[]", "{}", '{"device": "tpu"}'])
def test_an_environment_without_a_device_is_one_line(content: str, tmp_path: Path) -> None:
    (tmp_path / "environment.json").write_text(content)
    with pytest.raises(UserError, match=r"environment.json: must name the device, cpu or cuda; got"):
        read_environment(tmp_path)


def test_an_environment_is_read_as_it_is(tmp_path: Path) -> None:
    atomic.write_json(tmp_path / "environment.json", {"device": "cpu", "torch": "2.11.0"})
    assert read_environment(tmp_path) == {"device": "cpu", "torch": "2.11.0"}
