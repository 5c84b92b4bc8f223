"""The churn curve: recordings, captures and recompiles along the walked trace, summed up, a line a mode."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

from matplotlib.figure import Figure

from stages.views import palette, words
from stages.views.document import Study, baseline, dig, mode_names
from stages.views.drawing import Drawn, draw, from_zero

EVENTS = ("num_recordings", "num_captures", "num_recompiles")


def churn(study: Study) -> Drawn | None:
    """None where nothing was recorded, captured or recompiled along any walk: the table then says so."""
    curves = {name: found for name in mode_names(study) if (found := curve(study, name))}
    if not any(points[-1][1] for points in curves.values()):
        return None
    colours = palette.mode_colours(mode_names(study), baseline(study))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for name, points in curves.items():
            style, _ = palette.mode_style(mode_names(study), name)
            axes.plot(*zip(*points, strict=True), linestyle=style, color=colours[name], linewidth=1.8, label=words.clean(name))
        axes.set_xlabel("step of the sequence")
        axes.set_ylabel("recordings, captures, recompiles")
        axes.set_xlim(0, None)
        from_zero(axes)
        figure.legend(loc="outside lower center", ncols=4, fontsize=9)

    caption = "Events after the worker was ready, summed along the steps of the trace. A line that ends flat has settled."
    sentences = [f"{name}: {words.count(points[-1][1])} events in {words.count(points[-1][0])} steps." for name, points in curves.items()]
    return draw("churn", "Churn along the trace", caption, words.clean(" ".join(sentences)), (7.2, 3.4), paint)


def curve(study: Study, name: str) -> list[tuple[float, float]]:
    """(steps walked, events so far) at the end of each window, from (0, 0); empty without windows."""
    windows: list[Any] = dig(study, "modes", name, "coverage", "churn", "windows") or []
    steps = accumulate(words.number(dig(window, "num_steps")) or 0.0 for window in windows)
    events = accumulate(sum(words.number(dig(window, key)) or 0.0 for key in EVENTS) for window in windows)
    return [(0.0, 0.0), *zip(steps, events, strict=True)] if windows else []
