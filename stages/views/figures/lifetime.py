"""Useful completions against worker lifetime: the figure of the first screen. Start-up is in every line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stages.analysis.wording import LONG_UNITS, at_rate, seconds
from stages.views import palette, words
from stages.views.document import Study, baseline, dig, headline_choice, mode_names, part, shown_modes, sort_numeric
from stages.views.drawing import Drawn, draw, from_zero
from stages.views.roles import roles, switches

FEWEST_LINES = 3
BEYOND = 1.1
_STATES = {"cold": "-", "warm": "--"}


def lifetime(study: Study) -> Drawn | None:
    """Completions of the baseline, the recommended mode, that of shorter lives and the runner-up, from cold and warm caches."""
    rate, names = drawn_rate(study), _drawn_modes(study)
    if rate is None or not names:
        return None
    curves = {name: part(study, "modes", name, "lifetime", "completions", rate) for name in names}
    colours = palette.mode_colours(mode_names(study), baseline(study))
    ends_s, known = panel_ends_s(study, names, rate), roles(study)
    labels = {name: f"{name} ({known[name]})" if name in known else name for name in names}

    def paint(figure: Figure) -> None:
        panels = figure.subplots(1, len(ends_s), squeeze=False)[0]
        for axes, end_s, unit in zip(panels, ends_s, ((1.0, "s (from process start)"), _unit(ends_s[-1])), strict=False):
            clock = Clock(end_s, *unit)
            for place, name in enumerate(names):
                _lines(axes, curves[name], (labels[name], colours[name], 4.4 - 0.9 * place), clock)
                _break_even(axes, part(study, "modes", name, "lifetime", "break_even", rate), colours[name], clock)
            _switches(axes, study, clock)
            from_zero(axes)
            axes.set_xlim(0, clock.end)
            axes.set_xlabel(f"worker lifetime, {clock.unit}")
        panels[0].set_ylabel("useful completions")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", fontsize=10, ncols=2)

    caption = (
        "Requests answered within the SLO (TTFT: time to first token, TPOT: time per further token) in a worker's whole life,"
        " start-up and its backlog included. Solid: cold, compile caches empty; dashed: warm, as an earlier start left them;"
        f" vertical: break-even with {baseline(study)}{_changes(study, ends_s)}. A line inside another: the two are equal."
    )
    title = f"Useful completions against worker lifetime, {at_rate(rate)}"
    return draw("lifetime", title, caption, _alternative(study, names, rate), (7.2, 3.7), paint)


class Clock(NamedTuple):
    """The time axis of one panel: where it ends, in s, and the unit its numbers have."""

    end_s: float
    unit_s: float
    unit: str

    @property
    def end(self) -> float:
        """Where it ends, in its own unit."""
        return self.end_s / self.unit_s


def panel_ends_s(study: Study, names: list[str], rate: str) -> list[float]:
    """Where the time axis ends; a second panel goes as far as the last change of the choice that the text names, where that is later."""
    near, last = last_seen_s(study, names, rate), max((at_s for _, at_s in switches(study)), default=0.0)
    return [near, BEYOND * last] if last > near else [near]


def _unit(end_s: float) -> tuple[float, str]:
    """As the text says such a lifetime."""
    return next(((size, unit) for size, unit in LONG_UNITS if end_s >= 3 * size), (1.0, "s"))


def _changes(study: Study, ends_s: list[float]) -> str:
    """What the verticals in the colour of the text are, and what the second panel is for."""
    if not switches(study):
        return ""
    right = "" if len(ends_s) == 1 else "; right: as far as the last of these"
    return f", or, in the colour of the text, where the choice changes{right}"


def _switches(axes: Axes, study: Study, clock: Clock) -> None:
    for cache, at_s in switches(study):
        if at_s <= clock.end_s:
            axes.axvline(at_s / clock.unit_s, color=palette.INK, linewidth=1, linestyle=_STATES[cache])


def _drawn_modes(study: Study) -> list[str]:
    """The baseline, then the other modes of the first screen; where those are too few to compare, the next in completions."""
    wanted = [baseline(study), *roles(study)]
    with_curves = [name for name in shown_modes(study) if dig(study, "modes", name, "lifetime", "completions")]
    chosen = [name for name in dict.fromkeys(wanted) if name in with_curves]
    others = sorted((name for name in with_curves if name not in chosen), key=lambda name: -_last(study, name))
    return [*chosen, *others][: max(FEWEST_LINES, len(chosen))]


def _last(study: Study, name: str) -> float:
    """Completions at the longest lifetime drawn, from cold."""
    rows = dig(study, "modes", name, "lifetime", "completions", drawn_rate(study) or "", "cold") or []
    return float(rows[-1][1]) if rows else 0.0


def drawn_rate(study: Study) -> str | None:
    """The arrival rate of the figure: the verdict's, else the lowest with completions; None without any."""
    rates = part(study, "modes", baseline(study), "lifetime", "completions")
    choice = headline_choice(study)
    if choice and choice[1] in rates:
        return choice[1]
    return next(iter(sort_numeric(rates)), None)


def last_seen_s(study: Study, names: list[str], rate: str) -> float:
    """Where the time axis ends: far enough to see every start and every crossing, near enough to tell them apart."""
    marks = [words.number(dig(study, "modes", name, "lifetime", "ready_s", state)) for name in names for state in _STATES]
    for name in names:
        for found in part(study, "modes", name, "lifetime", "break_even", rate).values():
            marks.append(words.number(dig(found, "lifetime_s")))
    longest = max(
        (point[0] for name in names for rows in part(study, "modes", name, "lifetime", "completions", rate).values() for point in rows),
        default=1.0,
    )
    return min(longest, 3.0 * max((mark for mark in marks if mark), default=longest))


def _lines(axes: Axes, curves: Mapping[str, Any], style_of: tuple[str, str, float], clock: Clock) -> None:
    """`style_of`: name, colour, width. Later modes are thinner, so that one that lies on another still shows both."""
    name, colour, width = style_of
    for state, style in _STATES.items():
        rows = [[row[0] / clock.unit_s, *row[1:]] for row in until(curves.get(state) or [], clock.end_s)]
        if rows:
            text = words.clean(name) if state == "cold" else None
            axes.plot([row[0] for row in rows], [row[1] for row in rows], style, color=colour, linewidth=width, label=text)


def until(rows: list[list[float]], horizon: float) -> list[list[float]]:
    """Rows up to the horizon, the last one interpolated, so that the y axis fits what is seen."""
    inside = [row for row in rows if row[0] <= horizon]
    after = next((row for row in rows if row[0] > horizon), None)
    if inside and after:
        share = (horizon - inside[-1][0]) / (after[0] - inside[-1][0])
        inside = [*inside, [a + share * (b - a) for a, b in zip(inside[-1], after, strict=True)]]
    return inside


def _break_even(axes: Axes, found: Mapping[str, Any], colour: str, clock: Clock) -> None:
    for state, style in _STATES.items():
        at, low, high = (words.number(dig(found, state, key)) for key in ("lifetime_s", "low_s", "high_s"))
        if at is not None and at <= clock.end_s:
            axes.axvline(at / clock.unit_s, color=colour, linewidth=1, linestyle=style, alpha=0.8)
        if low is not None and high is not None:
            axes.axvspan(low / clock.unit_s, min(high, clock.end_s) / clock.unit_s, color=colour, alpha=0.10, linewidth=0)


def _alternative(study: Study, names: list[str], rate: str) -> str:
    base, sentences = baseline(study), []
    for name in names:
        start = words.seconds(dig(study, "modes", name, "lifetime", "ready_s", "cold"))
        found = part(study, "modes", name, "lifetime", "break_even", rate, "cold")
        said = {
            "at": f"ahead of {base} after {words.seconds(found.get('lifetime_s'))}",
            "never": f"never, it does not stay ahead of {base}",
        }
        answer = said.get(str(found.get("answer")), found.get("answer"))
        against = "" if name == base or not answer else f", break-even: {answer}"
        sentences.append(f"{name} ready after {start} from cold{against}.")
    changes = ", ".join(f"{seconds(at_s)} {cache}" for cache, at_s in switches(study))
    return words.clean(" ".join([*sentences, f"The choice changes at {changes}." if changes else ""]).strip())
