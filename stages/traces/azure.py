"""The public Azure LLM inference traces of 2023 (CC-BY 4.0; Patel et al., "Splitwise", ISCA 2024)."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from stages.core.errors import UserError
from stages.core.paths import root
from stages.core.records.plan import Request
from stages.traces.checks import require, require_between
from stages.traces.csv_file import Row, rebased, rows_of, sorted_from_zero

_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?:\.(\d{1,9}))?", re.ASCII)
_EPOCH = datetime(1970, 1, 1)


@dataclass
class Azure:
    """A time window of the published CSV: TIMESTAMP (7 fractional digits, no zone), ContextTokens, GeneratedTokens.

    `path` (relative to the project's root) must exist when it is given; when it is empty, the first file of
    `search_paths` that exists is taken. `sha256` is the file's full digest, in hex; empty means not checked.
    The window holds the requests from `start_s` up to, not including, `start_s + window_s`, counted from the first line.
    """

    name: str = "azure"
    path: str = ""
    search_paths: list[str] = field(default_factory=list)
    sha256: str = ""
    start_s: float = 0.0
    window_s: float = 60.0

    def __post_init__(self) -> None:
        """Raise UserError for a window or digest that cannot be."""
        require_between("trace.start_s", self.start_s, 0, 1e9)
        require_between("trace.window_s", self.window_s, 1e-3, 1e9)
        is_digest = re.fullmatch(r"([0-9a-f]{64})?", self.sha256) is not None
        require(is_digest, "trace.sha256", "must be 64 lower-case hex digits, or empty", self.sha256, "Use sha256sum.")

    def files(self) -> list[Path]:
        """The CSV. Raises UserError that names every place looked at."""
        return [self._file()]

    def requests(self) -> list[Request]:
        """The window's requests, numbered and timed from its first. The whole file is checked.

        Raises UserError when no file is found, its digest differs, a line is broken or the window is empty.
        """
        path = self._file()
        self._check_digest(path)
        rows = list(rows_of(path, ("TIMESTAMP", "ContextTokens", "GeneratedTokens")))
        every = sorted_from_zero(_requests(rows), rows, "TIMESTAMP")
        inside = [request for request in every if self.start_s <= request.arrival_s < self.start_s + self.window_s]
        last_s = every[-1].arrival_s
        rule = f"must leave requests in the window; the file ends at {last_s:g} s"
        require(bool(inside), "trace.start_s", rule, self.start_s, "Move the window.")
        return rebased([request.model_copy(update={"request_id": i}) for i, request in enumerate(inside)])

    def _file(self) -> Path:
        names = [self.path] if self.path else self.search_paths
        candidates = [root() / name for name in names]
        found = next((path for path in candidates if path.is_file()), None)
        if found is None:
            remedy = "Download the file (the README has the address) or set trace.path."
            raise UserError("trace.path", "must be an existing file", ", ".join(map(str, candidates)) or "no path", remedy)
        return found

    def _check_digest(self, path: Path) -> None:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        same = self.sha256 in ("", digest)
        require(same, f"{path}", f"must have sha256 {self.sha256} (trace.sha256)", digest, "Download it again, or set the digest.")


def _requests(rows: list[Row]) -> list[Request]:
    start_ns = _time_ns(rows[0])
    return [
        Request(
            request_id=index,
            arrival_s=(_time_ns(row) - start_ns) / 1e9,
            prompt_tokens=row.tokens("ContextTokens"),
            output_tokens=row.tokens("GeneratedTokens"),
        )
        for index, row in enumerate(rows)
    ]


def _time_ns(row: Row) -> int:
    """Whole nanoseconds: `%f` of strptime takes 6 digits and the file has 7."""
    match = _TIME.fullmatch(row.cells["TIMESTAMP"].strip())
    if not match:
        raise row.refused("TIMESTAMP", "must be a time like 2023-11-16 18:15:46.6805900")
    try:
        seconds = (datetime.fromisoformat(match[1]) - _EPOCH) // timedelta(seconds=1)
    except ValueError as error:
        raise row.refused("TIMESTAMP", f"must be a time that exists ({error})") from error
    return seconds * 10**9 + int((match[2] or "0").ljust(9, "0"))
