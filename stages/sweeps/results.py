"""cell.json: what became of one cell of a sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from stages.core.errors import UserError
from stages.core.records.base import Document, read

CELL_FILE, STUDY_FOLDER, LOG_FILE = "cell.json", "study", "log.txt"


class CellResult(Document):
    """One cell. `choices`: swept key -> value, as given. `mode` is the swept mode, or empty when each study has its own.

    `stage`, `exit_status` and `log_tail` say which command ended the cell; `stage` is empty when all went through.
    """

    cell: str
    choices: dict[str, str]
    mode: str
    status: Literal["ok", "failed"]
    stage: str
    exit_status: int
    log_tail: list[str]
    seconds: dict[str, float]
    started_at: str
    ended_at: str


def read_cells(sweep: Path) -> list[CellResult]:
    """Every cell of a sweep's folder, in the order of their numbers. Raises UserError when there is none."""
    files = sorted(sweep.glob(f"*/{CELL_FILE}"), key=lambda file: (len(file.parent.name), file.parent.name))
    if not files:
        raise UserError(str(sweep), "must be the folder of a sweep with finished cells", "none there", "Run python -m stages.sweep.")
    return [read(file, CellResult) for file in files]


def varying(cells: list[CellResult]) -> list[str]:
    """The swept keys whose value differs between cells; all swept keys when there is one cell."""
    keys = list(dict.fromkeys(key for cell in cells for key in cell.choices))
    different = [key for key in keys if len({cell.choices.get(key) for cell in cells}) > 1]
    return different or keys


def described(cell: CellResult, keys: list[str]) -> str:
    """A cell by what sets it apart: `mode=compile precision=bf16`."""
    return " ".join(f"{key}={cell.choices.get(key, '')}" for key in keys) or cell.cell
