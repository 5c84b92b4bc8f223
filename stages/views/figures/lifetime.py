"""Useful completions against worker lifetime: the figure of the first screen. Start-up is in every line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stages.analysis.wording import at_rate, seconds
from stages.views import palette, words
from stages.views.document import Study, baseline, dig, headline_choice, mode_names, part, shown_modes, sort_numeric
from stages.views.drawing import Drawn, draw, from_zero
from stages.views.roles import roles, spans

FEWEST_LINES = 3
_STATES = {"cold": "-", "warm": "--"}


def lifetime(study: Study) -> Drawn | None:
    """Completions of the baseline, the recommended mode, that of shorter lives and the runner-up, from cold and warm caches."""
    rate, names = drawn_rate(study), _drawn_modes(study)
    if rate is None or not names:
        return None
    curves = {name: part(study, "modes", name, "lifetime", "completions", rate) for name in names}
    colours = palette.mode_colours(mode_names(study), baseline(study))
    horizon, known = last_seen_s(study, names, rate), roles(study)
    labels = {name: f"{name} ({known[name]})" if name in known else name for name in names}

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for place, name in enumerate(names):
            _lines(axes, curves[name], (labels[name], colours[name], 4.4 - 0.9 * place), horizon)
            _break_even(axes, part(study, "modes", name, "lifetime", "break_even", rate), colours[name], horizon)
        from_zero(axes)
        axes.set_xlim(0, horizon)
        axes.set_xlabel("worker lifetime, s (from process start)")
        axes.set_ylabel("useful completions")
        figure.legend(loc="outside lower center", fontsize=10, ncols=2)

    caption = (
        "Requests answered within the SLO (TTFT: time to first token, TPOT: time per further token) in a worker's whole life,"
        " start-up and its backlog included. Solid: cold caches; dashed: warm;"
        f" vertical: break-even with {baseline(study)}. A line inside another: the two are equal.{_beyond(study, horizon)}"
    )
    title = f"Useful completions against worker lifetime, {at_rate(rate)}"
    return draw("lifetime", title, caption, _alternative(study, names, rate), (7.2, 3.7), paint)


def _beyond(study: Study, horizon: float) -> str:
    """That the switch to the recommended mode lies outside the figure, where it does."""
    along = spans(study, "cold")
    if len(along) < 2 or along[-1]["from_s"] <= horizon:
        return ""
    return f" The switch to {words.clean(along[-1]['mode'])}, {seconds(along[-1]['from_s'])} from cold, lies further right."


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


def _lines(axes: Axes, curves: Mapping[str, Any], style_of: tuple[str, str, float], horizon: float) -> None:
    """`style_of`: name, colour, width. Later modes are thinner, so that one that lies on another still shows both."""
    name, colour, width = style_of
    for state, style in _STATES.items():
        rows = until(curves.get(state) or [], horizon)
        if rows:
            text = words.clean(name) if state == "cold" else None
            axes.plot([row[0] for row in rows], [row[1] for row in rows], style, color=colour, linewidth=width, label=text)
        if rows and len(rows[0]) > 3:
            axes.fill_between(
                [row[0] for row in rows], [row[2] for row in rows], [row[3] for row in rows], color=colour, alpha=0.15, linewidth=0
            )


def until(rows: list[list[float]], horizon: float) -> list[list[float]]:
    """Rows up to the horizon, the last one interpolated, so that the y axis fits what is seen."""
    inside = [row for row in rows if row[0] <= horizon]
    after = next((row for row in rows if row[0] > horizon), None)
    if inside and after:
        share = (horizon - inside[-1][0]) / (after[0] - inside[-1][0])
        inside = [*inside, [a + share * (b - a) for a, b in zip(inside[-1], after, strict=True)]]
    return inside


def _break_even(axes: Axes, found: Mapping[str, Any], colour: str, horizon: float) -> None:
    for state, style in _STATES.items():
        at, low, high = (words.number(dig(found, state, key)) for key in ("lifetime_s", "low_s", "high_s"))
        if at is not None and at <= horizon:
            axes.axvline(at, color=colour, linewidth=1, linestyle=style, alpha=0.8)
        if low is not None and high is not None:
            axes.axvspan(low, min(high, horizon), color=colour, alpha=0.10, linewidth=0)


def _alternative(study: Study, names: list[str], rate: str) -> str:
    sentences = []
    for name in names:
        start = words.seconds(dig(study, "modes", name, "lifetime", "ready_s", "cold"))
        found = part(study, "modes", name, "lifetime", "break_even", rate, "cold")
        answer = {"at": f"ahead of {baseline(study)} after {words.seconds(found.get('lifetime_s'))}"}.get(
            str(found.get("answer")), found.get("answer")
        )
        against = "" if name == baseline(study) or not answer else f", break-even: {answer}"
        sentences.append(f"{name} ready after {start} from cold{against}.")
    return words.clean(" ".join(sentences))
