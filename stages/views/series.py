"""Rows for `dvc plots`: step times over batch sizes, completions over lifetimes; the templates in .dvc/plots tell modes apart by colour."""

from __future__ import annotations

from typing import Any

from stages.views import words
from stages.views.document import Study, decode_batches, dig, part, shown_modes
from stages.views.figures.lifetime import drawn_rate, last_seen_s, until

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
    """One row a mode, cache state and lifetime at the rate of the figure and as far as its first panel goes; start-up is included."""
    rate, names = drawn_rate(study), shown_modes(study)
    if rate is None:
        return []
    last_s = last_seen_s(study, names, rate)
    rows = []
    for name in names:
        for state, points in sorted(part(study, "modes", name, "lifetime", "completions", rate).items()):
            seen = until(points, last_s)
            rows += [{"mode": name, "caches": state, "lifetime_s": point[0], "completions": point[1]} for point in seen]
    return rows


def all_series(study: Study) -> dict[str, Rows]:
    """Rows by file name."""
    return {"steady_state": steady_state(study), "completions": completions(study)}
