"""Goodput against the rate offered: where a mode stops to keep up."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stages.views import palette, words
from stages.views.document import Study, baseline, dig, mode_names, part, rates, shown_modes
from stages.views.drawing import Drawn, draw, from_zero

Points = list[tuple[float, float]]


def goodput(study: Study) -> Drawn | None:
    """Runs and probes of the search, a line a mode; None where fewer than two rates were offered."""
    curves = {name: found for name in shown_modes(study) if len(found := points(study, name)) > 1}
    if not curves:
        return None
    colours = palette.mode_colours(mode_names(study), baseline(study))

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        highest = max(rate for found in curves.values() for rate, _ in found)
        axes.plot([0, highest], [0, highest], color=palette.SOFT, linewidth=1, linestyle=":", label="all that arrive")
        for name, found in curves.items():
            _curve(axes, name, found, mode_names(study), colours[name])
        axes.set_xlabel("requests offered, 1/s")
        axes.set_ylabel("requests within every limit, 1/s")
        axes.set_xlim(0, None)
        from_zero(axes)
        figure.legend(loc="outside lower center", ncols=3, fontsize=9)

    caption = "Each point is one run. On the dotted line every request that arrives is served within the limits; below it some are not."
    return draw("goodput", "Goodput against rate", caption, _alternative(study, curves), (7.2, 4.2), paint)


def points(study: Study, name: str) -> Points:
    """(rate offered, goodput), ascending, the mean where a rate was offered more than once."""
    load = part(study, "modes", name, "load")
    runs = [load[rate] for rate in rates(study) if rate in load] + list(load.get("search") or [])
    by_rate: dict[float, list[float]] = {}
    for run in runs:
        rate, value = words.number(dig(run, "arrival_rate_per_s")), words.number(dig(run, "request_goodput"))
        if rate is not None and value is not None:
            by_rate.setdefault(rate, []).append(value)
    return [(rate, sum(values) / len(values)) for rate, values in sorted(by_rate.items())]


def _curve(axes: Axes, name: str, found: Points, names: list[str], colour: str) -> None:
    style, marker = palette.mode_style(names, name)
    label = words.clean(name)
    axes.plot(*zip(*found, strict=True), linestyle=style, marker=marker, markersize=5, color=colour, linewidth=1.8, label=label)


def _alternative(study: Study, curves: dict[str, Points]) -> str:
    said = []
    for name, found in curves.items():
        best = words.number(dig(study, "modes", name, "load", "max_goodput"))
        most = "at no rate all of them" if best is None else f"at most {words.plain(best)} requests/s within the limits for 99 % of them"
        said.append(f"{name}: {most}, of {words.plain(found[0][0])} to {words.plain(found[-1][0])} offered.")
    return words.clean(" ".join(said))
