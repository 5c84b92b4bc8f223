"""The envelope that every record shares, and how records are written and read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Generic, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from stages.core import atomic
from stages.core.errors import UserError

Status = Literal["ok", "failed", "skipped", "unavailable"]


class Document(BaseModel):
    """A frozen part of a record: unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Hashes(Document):
    """What the record came from: its composed configuration, environment.json, and the code that ran."""

    config: str
    environment: str
    code: str


class Host(Document):
    """What may differ between two runs in equal environments: kept in the record, never a reason to run again."""

    hostname: str = ""
    gpu_uuid: str | None = None
    gpu_free_bytes: int | None = None
    load_average: float | None = None


Data = TypeVar("Data", bound=Document)


class Record(BaseModel, Generic[Data]):
    """One stage's result for one item (a mode or a factorial). `data` is None unless `status` is `ok`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    schema_version: Literal[1] = 1
    stage: str
    item: str
    status: Status
    reason: str = ""
    log_tail: list[str] = []
    started_at: str
    ended_at: str
    command: str
    hashes: Hashes
    host: Host = Host()
    data: Data | None = None

    @model_validator(mode="after")
    def _has_data_when_ok(self) -> Self:
        if (self.status == "ok") != (self.data is not None):
            raise ValueError("data must be there exactly when status is ok")
        return self


RecordType = TypeVar("RecordType", bound=BaseModel)


def write(path: Path, record: BaseModel) -> None:
    """Write a record atomically."""
    atomic.write_json(path, record.model_dump(mode="json"))


def read(path: Path, record_type: type[RecordType]) -> RecordType:
    """Read and check a record. Raises UserError when the file is missing or does not fit the type."""
    try:
        return record_type.model_validate(read_json(path))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UserError(f"{path}:{place}", first["msg"], first.get("input"), "Delete the record and run dvc repro.") from error


def read_json(path: Path) -> Any:
    """Read a JSON file. Raises UserError when it is missing or not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number)
    except FileNotFoundError as error:
        raise UserError(str(path), "must exist", "no such file", "Run dvc repro first.") from error
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, NaN, or nested without end
        raise UserError(str(path), "must be JSON", str(error), "Delete the file and run dvc repro.") from error


def read_environment(folder: Path) -> dict[str, Any]:
    """environment.json of a study. Raises UserError when it is missing, broken or names no device."""
    document = read_json(folder / "environment.json")
    if not isinstance(document, dict) or document.get("device") not in ("cpu", "cuda"):
        raise UserError(f"{folder}/environment.json", "must name the device, cpu or cuda", document, "Run python -m stages.environment.")
    return document


def _no_number(constant: str) -> float:
    raise ValueError(f"{constant} is no JSON number")
