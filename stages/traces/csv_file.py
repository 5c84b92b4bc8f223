"""Reading a trace's CSV file: every cell checked, every message with file, line, column and rule."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stages.core.errors import UserError
from stages.core.records.plan import Request

if TYPE_CHECKING:
    from _csv import Reader as _Reader

MAX_TOKENS = 10**8
MAX_ID = 2**53
MAX_SECONDS = 1e9

_FIX = "Correct the file, or name another one in conf/trace/."


@dataclass(frozen=True)
class Row:
    """One data line: `line` counts from 1 and the header is line 1."""

    path: Path
    line: int
    cells: dict[str, str]

    def tokens(self, column: str) -> int:
        """A count of tokens, from 1 to 10^8. Raises UserError otherwise (negative, zero, not whole)."""
        return self._whole(column, 1, MAX_TOKENS, "a whole number of tokens")

    def identifier(self, column: str) -> int:
        """A whole number from 0 to 2^53 (exact in JSON). Raises UserError otherwise."""
        return self._whole(column, 0, MAX_ID, "a whole number")

    def seconds(self, column: str) -> float:
        """A time from 0 to 10^9 s. Raises UserError otherwise."""
        try:
            value = float(self.cells[column].replace("_", "no digit"))  # Python reads 1_0 as 10
        except ValueError as error:
            raise self.refused(column, "must be a number of seconds") from error
        if not 0 <= value <= MAX_SECONDS:
            raise self.refused(column, "must be a number of seconds from 0 to 1e9")
        return value

    def refused(self, column: str, rule: str) -> UserError:
        """The message for a cell that breaks a rule."""
        return UserError(f"{self.path}: line {self.line}, column {column}", rule, self.cells[column], _FIX)

    def _whole(self, column: str, low: int, high: int, what: str) -> int:
        text = self.cells[column].strip()
        digits = text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit()):
            raise self.refused(column, f"must be {what}")
        value = int(text) if len(text) <= 18 else high + 1
        if not low <= value <= high:
            raise self.refused(column, f"must be {what}, from {low} to {high}")
        return value


def existing(path: Path) -> Path:
    """The path itself. Raises UserError unless it is a file."""
    if not path.is_file():
        raise UserError("trace.path", "must be an existing CSV file", str(path), "Name one in conf/trace/ or by an override.")
    return path


def rows_of(path: Path, required: Sequence[str], optional: Collection[str] = ()) -> Iterator[Row]:
    """The data lines of a CSV file with a header, read by column name; blank lines are skipped.

    Raises UserError for a file that is not UTF-8 or not CSV; for a missing, repeated or unknown column; for
    a line with too few or too many cells; and, at the end, when there was no data line.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from _rows(path, csv.reader(file, strict=True), required, optional)
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(str(path), "must be a CSV file in UTF-8", str(error), _FIX) from error


def sorted_from_zero(requests: Sequence[Request], rows: Sequence[Row], column: str) -> list[Request]:
    """The same requests, counted from the first one's arrival. Raises UserError where a time goes back."""
    for earlier, later, row in zip(requests, requests[1:], rows[1:], strict=False):
        if later.arrival_s < earlier.arrival_s:
            raise row.refused(column, "must not be earlier than the line before (times sorted)")
    return rebased(requests)


def rebased(requests: Sequence[Request]) -> list[Request]:
    """The same requests with the first arrival at 0 s, rounded to 0.1 us (what the public traces resolve)."""
    start_s = requests[0].arrival_s
    return [request.model_copy(update={"arrival_s": round(request.arrival_s - start_s, 7)}) for request in requests]


def _rows(path: Path, lines: _Reader, required: Sequence[str], optional: Collection[str]) -> Iterator[Row]:
    header = [cell.strip() for cell in next(lines, [])]
    _check_header(path, header, required, optional)
    num_rows = 0
    for cells in filter(None, lines):
        if len(cells) != len(header):
            raise UserError(f"{path}: line {lines.line_num}", f"must have {len(header)} cells", len(cells), _FIX)
        yield Row(path, lines.line_num, dict(zip(header, cells, strict=True)))
        num_rows += 1
    if not num_rows:
        raise UserError(str(path), "must have at least one request", "no rows", _FIX)


def _check_header(path: Path, header: Sequence[str], required: Sequence[str], optional: Collection[str]) -> None:
    shown = ",".join(header) or "an empty file"
    for column in required:
        if header.count(column) != 1:
            raise UserError(f"{path}: line 1, column {column}", "must be in the header once", shown, _FIX)
    unknown = sorted(set(header) - {*required, *optional})
    if unknown:
        known = ", ".join([*required, *optional])
        raise UserError(f"{path}: line 1, column {unknown[0] or '(no name)'}", f"must be one of {known}", shown, _FIX)
