"""Rows for `dvc plots`: step times over batch sizes, completions over lifetimes; the template tells modes apart by colour."""

from __future__ import annotations

from typing import Any

from stages.views import words
from stages.views.document import Study, decode_batches, dig, headline_choice, part, shown_modes

Rows = list[dict[str, Any]]


def steady_state(study: Study) -> Rows:
    """One row a mode and decode batch: `mode`, `batch`, `wall_us` (median)."""
    rows = []
    for name in shown_modes(study):
        for batch in decode_batches(study):
            median = words.number(dig(study, "modes", name, "steady_state", "decode", batch, "wall_us", "median"))
            if median is not None:
                rows.append({"mode": name, "batch": int(batch), "wall_us": median})
    return rows


def completions(study: Study) -> Rows:
    """One row a mode, cache state and lifetime at the verdict's arrival rate; start-up is included."""
    choice = headline_choice(study)
    rows = []
    for name in shown_modes(study) if choice else []:
        for state, points in sorted(part(study, "modes", name, "lifetime", "completions", choice[1] if choice else "").items()):
            rows += [{"mode": f"{name}, {state}", "lifetime_s": point[0], "completions": point[1]} for point in points]
    return rows


def all_series(study: Study) -> dict[str, Rows]:
    """Rows by file name."""
    return {"steady_state": steady_state(study), "completions": completions(study)}
