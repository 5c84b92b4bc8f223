"""What starting costs a fleet, and the middle way: serve eager while compiling."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stages.analysis.lifetimes import CACHES
from stages.views import words
from stages.views.document import Study, dig, mode_names, part, sort_numeric, why_not
from stages.views.figures.fleet import at
from stages.views.figures.lifetime import drawn_rate
from stages.views.tables.table import Table, dropped_empty

MIDDLE = "eager while compiling"


def replaced(study: Study) -> Table:
    """Share of a worker's life lost to starting, and the further workers that this needs, for each interval of replacing."""
    periods = sort_numeric({every for name in mode_names(study) for every in part(study, "modes", name, "lifetime", "replaced")})
    rows = []
    for name in mode_names(study):
        for state in CACHES:
            cells = [_cost(dig(study, "modes", name, "lifetime", "replaced", every, state)) for every in periods]
            if any(cell != words.ABSENT for cell in cells):
                rows.append([f"{name}, {state}", *cells])
    note = "Share of the fleet lost to starting, and workers needed beyond each one, when workers are replaced at this interval."
    return dropped_empty(Table("Replaced every", ["mode, caches", *(words.chosen_seconds(float(every)) for every in periods)], rows, note))


def _cost(cost: object) -> str:
    if dig(cost, "share_lost") is None:
        return words.ABSENT
    extra = words.number(dig(cost, "extra_workers"))
    return f"{words.percent(dig(cost, 'share_lost'))}, {'never ready' if extra is None else f'+{words.plain(extra)}'}"


def middle_way(study: Study) -> Table:
    """When eager served, when the mode took over, and what compiling took from the eager steps."""
    rows = [[name, *_middle(found)] for name in mode_names(study) if (found := part(study, "modes", name, "middle_way"))]
    columns = [
        "mode",
        "first token",
        "switched",
        "longest gap",
        "eager step alone, ms",
        "eager step meanwhile, ms",
        "step after, ms",
        "eager steps served",
        "compiled after",
        "note",
    ]
    note = "Serve eager while compiling in the same worker, from empty caches; switch when every planned shape is ready."
    return dropped_empty(Table("Eager while compiling", columns, rows, note, frozenset({"note"})))


def by_start(study: Study) -> Table:
    """Completions of modes with a middle way, by how the worker starts and how long it lives, at the rate of the lifetime figure."""
    rate = drawn_rate(study) or ""
    periods = [float(every) for every in part(study, "choices").get("lifetimes_s") or []]
    rows = []
    for name in mode_names(study):
        middle = part(study, "modes", name, "lifetime", "middle_way").get(rate)
        curves = {**part(study, "modes", name, "lifetime", "completions", rate), MIDDLE: middle}
        for start in ("cold", MIDDLE, "warm") if middle and not why_not(study, name) else ():
            cells = [words.count(at(curves[start], every)) for every in periods] if curves.get(start) else []
            rows.append([f"{name}, {start}", *(cells or [words.ABSENT] * len(periods))])
    where = "at saturation" if rate == "saturation" else f"at {words.rate(rate)}"
    note = (
        f"Useful completions {where} in a whole life, by its length. Eager while compiling: eager's goodput, slowed by what compiling"
        " takes from its steps, until the switch; without the backlog of the start."
    )
    return Table("Completions by start", ["mode, start", *(words.chosen_seconds(every) for every in periods)], rows, note)


def _middle(found: Mapping[str, Any]) -> list[str]:
    if not found.get("supported"):
        return [*[words.ABSENT] * 8, str(found.get("reason") or "")]
    times = [words.seconds(found.get(name)) for name in ("first_served_s", "switched_s", "longest_gap_s")]
    steps = [words.plain(found.get(name)) for name in ("eager_alone_ms", "eager_during_ms", "mode_after_ms")]
    return [*times, *steps, words.count(found.get("num_steps_before")), words.count(found.get("recompiled")), ""]
