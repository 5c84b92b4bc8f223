"""Whether recording, capturing and recompiling ended along the walked trace."""

from __future__ import annotations

from typing import Any

from stages.core.records.path import Churn, ChurnWindow


def churn_of(walked: dict[str, Any]) -> Churn:
    """`settled` when the second half of the walk had no event: a longer walk would then show no more of them per step."""
    windows = [ChurnWindow(**window) for window in walked["windows"]]
    num_steps = sum(window.num_steps for window in windows)
    num_events = sum(window.num_recordings + window.num_captures + window.num_recompiles for window in windows)
    quiet_from = 0 if walked["last_churn"] is None else walked["last_churn"] + 1
    settled = quiet_from <= num_steps / 2
    return Churn(
        verdict="settled" if settled else "not_settled",
        settled_after_steps=quiet_from if settled else None,
        num_events=num_events,
        events_per_1000_steps=1000 * num_events / num_steps if num_steps else 0.0,
        wall_s=sum(window.wall_s for window in windows),
        windows=windows,
    )
