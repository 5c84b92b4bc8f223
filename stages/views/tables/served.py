"""Answers under load: a sample of requests against eager serving each alone."""

from __future__ import annotations

from typing import Any

from stages.views import words
from stages.views.document import Study, dig, mode_names, part
from stages.views.tables.table import Table, dropped_empty

NOTE = (
    "Tokens that requests got from the loaded worker, against eager serving each alone, led along the same tokens. A tie: another token of"
    " eager's, no further below its best than four times eager's own error there. A fault: further."
)


def answers(study: Study) -> Table:
    """One row a mode and arrival rate; empty for a study without samples."""
    rows = []
    for name in mode_names(study):
        for rate, found in part(study, "modes", name, "correctness", "under_load").items():
            counts = [words.count(dig(found, key)) for key in ("num_requests", "num_tokens", "num_ties", "num_faults")]
            rows.append([f"{name}, {words.rate(rate)}", str(dig(found, "verdict") or words.ABSENT), *counts, _first(dig(found, "first"))])
    columns = ["mode, arrivals", "answers", "requests", "tokens", "ties", "faults", "first difference"]
    return dropped_empty(Table("Answers under load", columns, rows, NOTE, frozenset({"answers", "first difference"})))


def _first(found: Any) -> str:
    if not found:
        return words.ABSENT
    kind = "fault" if dig(found, "is_fault") else "tie"
    place = f"{kind} at token {words.count(dig(found, 'token'))} of request {words.count(dig(found, 'request_id'))}"
    given_up, margin, noise = (words.plain(dig(found, key)) for key in ("given_up", "margin", "noise"))
    return f"{place}: {given_up} below eager's best logit, whose margin is {margin}; eager's error {noise}"
