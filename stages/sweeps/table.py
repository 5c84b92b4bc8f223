"""The closing table of a sweep: one row a cell, its choices first, then what its study says; remarks below it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from stages.core.settings import BASELINE
from stages.sweeps.results import LOG_FILE, STUDY_FOLDER, CellResult, varying
from stages.views import certainty, document

_COLUMNS = ("status", "ready\ncold (s)", "sequence\n(s)", "speed-up", "goodput\n(1/s)", "answers")
_CAPTION = "Speed-up is over eager in the same cell, timed in turn with it; the cells themselves were timed minutes apart."


def table(sweep: Path, cells: list[CellResult]) -> Table:
    """A rich table of the cells; one without a swept mode has a remark (its verdict) and no numbers. Speed-up is over eager."""
    keys = varying(cells)
    made = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=0)  # the box spaces; 80 columns hold two choices
    made.title, made.title_justify = f"sweep {sweep.name}", "left"
    made.caption, made.caption_justify = _CAPTION, "left"
    for name in ("cell", *keys, *_COLUMNS):
        made.add_column(name, overflow="fold")
    for cell in cells:
        chosen = [escape(cell.choices.get(key, "")) for key in keys]
        made.add_row(cell.cell, *chosen, *(escape(text) for text in _row(sweep / cell.cell / STUDY_FOLDER / "study.json", cell)))
    return made


def remarks(sweep: Path, cells: list[CellResult]) -> list[str]:
    """What the table has no room for: why a cell or its mode failed, or the verdict of a study with all modes."""
    return [f"{cell.cell}: {text}" for cell in cells if (text := _remark(sweep / cell.cell / STUDY_FOLDER / "study.json", cell))]


def is_failed(sweep: Path, cell: CellResult) -> bool:
    """Whether a command of the cell ended badly, or its swept mode broke. A mode that cannot run here is no failure."""
    if cell.status == "failed" or not cell.mode:
        return cell.status == "failed"
    study = document.load(sweep / cell.cell / STUDY_FOLDER / "study.json")
    return document.dig(study, "modes", cell.mode, "status") in (None, "failed", "skipped")


def _remark(file: Path, cell: CellResult) -> str:
    if cell.status == "failed":
        return f"failed in {cell.stage} ({cell.cell}/{LOG_FILE}): {cell.log_tail[-1] if cell.log_tail else 'it said nothing'}"
    study = document.load(file)
    said = document.why_not(study, cell.mode) if cell.mode else str(document.dig(study, "verdict", "sentence"))
    return " ".join(filter(None, [said, certainty.shifted(study)]))


def _row(file: Path, cell: CellResult) -> list[str]:
    if cell.status == "failed" or not cell.mode:
        return [cell.status, *[""] * (len(_COLUMNS) - 1)]
    study = document.load(file)
    return [document.label(study, cell.mode), *_numbers(study, cell.mode)]


def _numbers(study: document.Study, mode: str) -> list[str]:
    node = document.part(study, "modes", mode)
    sequence = document.part(node, "steady_state", "sequence")
    seconds = sequence.get("sequence_s")
    rates = document.rates(study)
    credited = not document.why_not(study, mode) and mode != BASELINE
    return [
        _number(document.dig(node, "startup", "cold", "ready_s")),
        _number(seconds.get("value") if isinstance(seconds, dict) else seconds),
        _number(document.dig(sequence, "vs_baseline", "speedup")) if credited else "",
        _number(document.dig(node, "load", rates[0], "request_goodput")) if rates else "",
        str(document.dig(node, "correctness", "verdict") or ""),
    ]


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else ""
