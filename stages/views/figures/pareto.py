"""Goodput, ready time and memory of the modes in one picture: what one is paid for with the others."""

from __future__ import annotations

from typing import Any, NamedTuple

from matplotlib.figure import Figure

from stages.views import palette, words
from stages.views.document import Study, baseline, dig, mode_names, part, rates, shown_modes
from stages.views.drawing import Drawn, draw, from_zero

LARGEST_AREA = 200.0
SMALLEST_AREA = 25.0


class Standing(NamedTuple):
    """What a mode delivers and costs: requests/s within the limits, s to ready from cold, bytes at the peak."""

    goodput: float
    ready_s: float
    peak_bytes: float


def pareto(study: Study) -> Drawn | None:
    """A point a mode; None where fewer than two modes have all three numbers."""
    found = {name: standing for name in shown_modes(study) if (standing := of_mode(study, name))}
    if len(found) < 2:
        return None
    front = frontier(found)
    colours, names = palette.mode_colours(mode_names(study), baseline(study)), mode_names(study)
    largest = max(one.peak_bytes for one in found.values())

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for name, one in found.items():
            area = max(SMALLEST_AREA, LARGEST_AREA * one.peak_bytes / largest)
            face = colours[name] if name in front else "none"
            marker = palette.mode_style(names, name)[1]
            style: dict[str, Any] = {"marker": marker, "facecolors": face, "edgecolors": colours[name], "linewidths": 1.5}
            axes.scatter(one.ready_s, one.goodput, s=area, label=f"{words.clean(name)}, {words.size(one.peak_bytes)}", **style)
        axes.set_xlabel("ready from cold caches, s")
        axes.set_ylabel("most requests within the limits, 1/s")
        from_zero(axes)
        axes.set_xlim(0, 1.1 * max(one.ready_s for one in found.values()))
        axes.set_ylim(0, 1.15 * max(one.goodput for one in found.values()))
        figure.legend(loc="outside lower center", ncols=2, fontsize=9, markerscale=0.6, labelspacing=0.9)

    caption = (
        "Up is more goodput, left is ready sooner, a larger mark holds more memory."
        " Filled: no other mode is as good in all three and better in one."
    )
    return draw("pareto", "Goodput, ready time and memory", caption, _alternative(found, front), (7.2, 4.4), paint)


def of_mode(study: Study, name: str) -> Standing | None:
    """The three numbers of one mode; its goodput is `max_goodput`, or the best of any rate where no rate was met."""
    load = part(study, "modes", name, "load")
    tried = [words.number(dig(load, rate, "request_goodput")) or 0.0 for rate in rates(study) if rate in load]
    best = words.number(load.get("max_goodput")) or max(tried, default=0.0)
    ready = words.number(dig(study, "modes", name, "startup", "cold", "ready_s"))
    peak = words.number(dig(study, "modes", name, "memory", "peak_bytes"))
    return Standing(best, ready, peak) if tried and ready is not None and peak is not None else None


def frontier(found: dict[str, Standing]) -> list[str]:
    """Modes that no other one is at least equal to in all three numbers and better in one."""
    return [name for name, one in found.items() if not any(_beats(other, one) for other in found.values())]


def _beats(other: Standing, one: Standing) -> bool:
    better = (other.goodput >= one.goodput, other.ready_s <= one.ready_s, other.peak_bytes <= one.peak_bytes)
    return all(better) and other != one


def _alternative(found: dict[str, Standing], front: list[str]) -> str:
    said = [
        f"{name}: {words.plain(one.goodput)} requests/s, ready in {words.seconds(one.ready_s)}, {words.size(one.peak_bytes)}"
        for name, one in found.items()
    ]
    return words.clean(f"{'; '.join(said)}. Not beaten in all three: {', '.join(front)}.")
