"""Two lives of a worker side by side: how long it must live until a mode pays, and what replacing it often costs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stages.analysis.lifetimes import EQUAL_SHARE
from stages.views import palette, words
from stages.views.document import Study, baseline, dig, mode_names, part, shown_modes, sort_numeric
from stages.views.drawing import Drawn, draw, from_zero
from stages.views.figures.lifetime import drawn_rate

USUAL_PERIOD_S = 600.0
NUM_POINTS = 400
FIRST_S = 1.0
LINES = {"cold": -0.18, "warm": 0.18}
_BAR = 0.32


def fleet(study: Study) -> Drawn | None:
    """Left: the lifetimes at which a mode is within 1 % of the best. Right: share of the fleet that starts, replaced every N minutes."""
    rate, names, period = drawn_rate(study), drawn_modes(study), drawn_period(study)
    if rate is None or period is None or len(names) < 2:
        return None
    curves = {name: part(study, "modes", name, "lifetime", "completions", rate) for name in names}
    colours = palette.mode_colours(mode_names(study), baseline(study))

    def paint(figure: Figure) -> None:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 2))
        _lasting(left, curves, colours)
        _replaced(right, study, names, period, colours)
        left.set_yticks(range(len(names)), [words.clean(name) for name in names])
        left.set_ylim(len(names) - 0.4, -0.6)

    often = words.chosen_seconds(float(period))
    where = "at saturation" if rate == "saturation" else f"at {words.rate(rate)}"
    caption = (
        f"Left, a long-lived worker: the lifetimes at which a mode's useful completions {where} are within 1 % of the most."
        f" Right, workers replaced every {often}: share of the fleet that is starting, and workers needed beyond 100."
        " Upper, full bars: from cold caches; lower, light ones: warm."
    )
    title = f"A long-lived worker, and one replaced every {often}"
    return draw("fleet", title, caption, _alternative(study, curves, period), (7.2, 1.5 + 0.42 * len(names)), paint)


def drawn_modes(study: Study) -> list[str]:
    """The modes that may be ranked and have completions."""
    return [name for name in shown_modes(study) if dig(study, "modes", name, "lifetime", "completions")]


def drawn_period(study: Study) -> str | None:
    """The study's shortest lifetime of ten minutes or more, else its longest; None without any."""
    periods = sort_numeric({every for name in drawn_modes(study) for every in part(study, "modes", name, "lifetime", "replaced")})
    return next((every for every in periods if float(every) >= USUAL_PERIOD_S), periods[-1] if periods else None)


def best_from(curves: Mapping[str, Mapping[str, Any]], state: str) -> dict[str, list[tuple[float, float]]]:
    """The spans of lifetimes, in s, in which each mode is within 1 % of the most completions from that cache state."""
    known = {name: rows for name, found in curves.items() if (rows := found.get(state))}
    if not known:
        return {}
    last = min(rows[-1][0] for rows in known.values())
    first = min(FIRST_S, last)
    grid = [first * (last / first) ** (index / (NUM_POINTS - 1)) for index in range(NUM_POINTS)]
    values = {name: [at(rows, lifetime_s) for lifetime_s in grid] for name, rows in known.items()}
    least = [(1 - EQUAL_SHARE) * max(column) for column in zip(*values.values(), strict=True)]
    return {name: _spans(grid, [0 < need <= own for own, need in zip(row, least, strict=True)]) for name, row in values.items()}


def at(rows: list[list[float]], lifetime_s: float) -> float:
    """Completions at a lifetime, between the rows of a curve."""
    place = min(max(bisect_right([row[0] for row in rows], lifetime_s), 1), len(rows) - 1)
    (x0, y0, *_), (x1, y1, *_) = rows[place - 1], rows[place]
    return y0 + (y1 - y0) * (min(lifetime_s, x1) - x0) / (x1 - x0)


def _spans(grid: list[float], inside: list[bool]) -> list[tuple[float, float]]:
    spans: list[tuple[float, float]] = []
    for index, one in enumerate(inside):
        if one and index and inside[index - 1]:
            spans[-1] = (spans[-1][0], grid[index])
        elif one:
            spans.append((grid[index], grid[index]))
    return spans


def _lasting(axes: Axes, curves: Mapping[str, Mapping[str, Any]], colours: Mapping[str, str]) -> None:
    first = min([FIRST_S, *(rows[-1][0] for found in curves.values() for rows in found.values() if rows)])
    for state, offset in LINES.items():
        for name, spans in best_from(curves, state).items():
            place = list(curves).index(name) + offset
            if not spans and state == "cold":
                axes.annotate("never", (first, place), xytext=(3, 0), textcoords="offset points", va="center", fontsize=8)
            for begin, end in spans:
                axes.barh(place, end - begin, left=begin, height=_BAR, color=colours[name], alpha=1.0 if state == "cold" else 0.45)
    axes.set_xscale("log")
    axes.set_xlim(left=first)
    marks = [mark for mark in (1, 10, 60, 600, 3600, 86400) if mark <= axes.get_xlim()[1]]
    axes.set_xticks(marks, [words.chosen_seconds(float(mark)) for mark in marks], fontsize=9)
    axes.set_xticks([], minor=True)
    axes.grid(True, axis="x", linewidth=0.6)
    axes.tick_params(length=0)
    axes.set_title("long-lived: among the best from", fontsize=10)
    axes.set_xlabel("worker lifetime")


def _replaced(axes: Axes, study: Study, names: list[str], period: str, colours: Mapping[str, str]) -> None:
    for state, offset in LINES.items():
        for place, name in enumerate(names):
            cost = part(study, "modes", name, "lifetime", "replaced", period, state)
            share = words.number(cost.get("share_lost"))
            if share is not None:
                axes.barh(place + offset, 100 * share, height=_BAR, color=colours[name], alpha=1.0 if state == "cold" else 0.45)
                end = (100 * share, place + offset)
                axes.annotate(_workers(cost), end, xytext=(3, 0), textcoords="offset points", va="center", fontsize=8)
    from_zero(axes, "x")
    axes.margins(x=0.3)
    axes.set_title(f"replaced every {words.chosen_seconds(float(period))}", fontsize=10)
    axes.set_xlabel("% starting (+ workers per 100)")


def _workers(cost: Mapping[str, Any]) -> str:
    extra = words.number(cost.get("extra_workers"))
    return "never ready" if extra is None else f"+{words.plain(100 * extra)}"


def _alternative(study: Study, curves: Mapping[str, Mapping[str, Any]], period: str) -> str:
    spans = best_from(curves, "cold")
    sentences = []
    for name in curves:
        best = f"among the best from {words.seconds(spans[name][0][0])}" if spans.get(name) else "never among the best"
        cost = part(study, "modes", name, "lifetime", "replaced", period, "cold")
        sentences.append(f"{name}: {best}; {words.percent(cost.get('share_lost'))} of the fleet starting when replaced.")
    return words.clean(f"From cold caches. {' '.join(sentences)}")
