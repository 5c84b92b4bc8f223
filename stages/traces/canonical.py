"""Your own trace, as a CSV of arrivals and lengths."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stages.core.paths import root
from stages.core.records.plan import Request
from stages.traces.csv_file import Row, existing, rows_of, sorted_from_zero

_REQUIRED = ("request_id", "arrival_s", "prompt_tokens", "output_tokens")
_OPTIONAL = ("adapter_id", "session_id", "prefix_blocks", "source")


@dataclass
class Canonical:
    """A CSV with columns request_id, arrival_s, prompt_tokens, output_tokens, in any order, sorted by arrival_s.

    adapter_id may be there, empty where a request asks for none; session_id, prefix_blocks and source may be there and
    are not used. `path` is relative to the project's root.
    """

    name: str
    path: str

    def files(self) -> list[Path]:
        """The CSV. Raises UserError when it does not exist."""
        return [existing(root() / self.path)]

    def requests(self) -> list[Request]:
        """Every line, timed from the first arrival. Raises UserError for a broken file or a repeated request_id."""
        rows = list(rows_of(self.files()[0], _REQUIRED, _OPTIONAL))
        requests = [_request(row) for row in rows]
        seen: set[int] = set()
        for request, row in zip(requests, rows, strict=True):
            if request.request_id in seen:
                raise row.refused("request_id", "must not repeat")
            seen.add(request.request_id)
        return sorted_from_zero(requests, rows, "arrival_s")


def _request(row: Row) -> Request:
    return Request(
        request_id=row.identifier("request_id"),
        arrival_s=row.seconds("arrival_s"),
        prompt_tokens=row.tokens("prompt_tokens"),
        output_tokens=row.tokens("output_tokens"),
        adapter_id=row.identifier("adapter_id") if row.cells.get("adapter_id", "").strip() else None,
    )
