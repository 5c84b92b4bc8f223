"""Latency distributions: step times at the smallest batch, and what requests saw under load."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stages.views import palette, words
from stages.views.document import Study, baseline, decode_batches, dig, mode_names, rates, shown_modes
from stages.views.drawing import Drawn, draw


@dataclass(frozen=True)
class _Panel:
    title: str
    unit: str
    samples: Mapping[str, list[float]]


def latency(study: Study) -> Drawn | None:
    """Empirical distributions (200 points a mode) of decode step time, TTFT and TPOT; None without any."""
    panels = [panel for panel in [*_steps(study), *_requests(study)] if panel.samples]
    if not panels:
        return None
    colours = palette.mode_colours(mode_names(study), baseline(study))

    def paint(figure: Figure) -> None:
        grid = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, panel in zip(grid, panels, strict=True):
            _curves(axes, panel, mode_names(study), colours)
        grid[0].set_ylabel("share at or below")
        curves = {curve.get_label(): curve for axes in grid for curve in axes.get_lines()}  # not every panel has every mode
        named = [curves[name] for name in map(words.clean, mode_names(study)) if name in curves]
        figure.legend(handles=named, loc="outside lower center", ncols=4, fontsize=9)

    caption = (
        "Every request of the run; every call of the blocks that count. Start-up is not included."
        " Modes whose path or answers failed are left out."
    )
    return draw("latency", "Latency distributions", caption, _alternative(panels), (7.2, 3.9), paint)


def _steps(study: Study) -> list[_Panel]:
    for batch in decode_batches(study)[:1]:
        found = {name: _ecdf(dig(study, "modes", name, "steady_state", "decode", batch, "wall_us")) for name in shown_modes(study)}
        return [_Panel(f"decode step, batch {batch}", "µs", {name: points for name, points in found.items() if points})]
    return []


def _requests(study: Study) -> list[_Panel]:
    panels = []
    for rate in rates(study)[:1]:
        for key, title in (("ttft_ms", "TTFT"), ("tpot_ms", "TPOT")):
            found = {name: _ecdf(dig(study, "modes", name, "load", rate, key)) for name in shown_modes(study)}
            panels.append(_Panel(f"{title}, {words.rate(rate)}", "ms", {name: points for name, points in found.items() if points}))
    return panels


def _ecdf(node: object) -> list[float]:
    points = dig(node, "ecdf")
    return [float(point) for point in points] if isinstance(points, list) and len(points) > 1 else []


def _curves(axes: Axes, panel: _Panel, names: list[str], colours: Mapping[str, str]) -> None:
    for name, points in panel.samples.items():
        style, _ = palette.mode_style(names, name)
        shares = [index / (len(points) - 1) for index in range(len(points))]
        axes.plot(sorted(points), shares, linestyle=style, color=colours[name], linewidth=1.8, label=words.clean(name))
    axes.set_title(words.clean(panel.title), fontsize=10)
    axes.set_xlabel(panel.unit)
    axes.set_ylim(0, 1)
    axes.set_xlim(0, None)
    axes.grid(True, linewidth=0.6)
    axes.tick_params(length=0)


def _alternative(panels: list[_Panel]) -> str:
    sentences = []
    for panel in panels:
        medians = [f"{name} {words.plain(median(points), panel.unit)}" for name, points in panel.samples.items()]
        sentences.append(f"{panel.title}: medians {', '.join(medians)}.")
    return words.clean(" ".join(sentences))
