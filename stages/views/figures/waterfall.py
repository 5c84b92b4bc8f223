"""Where the time goes between eager and compiled + replayed: one waterfall a factorial. Step times only, no start-up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stages.views import palette, words
from stages.views.document import Study, dig, part, points, sort_numeric
from stages.views.drawing import Drawn, draw, from_zero

_WORDS = {"sequence": "whole step sequence", "plan_weighted": "batches as planned", "load_weighted": "batches as under load"}
_STEPS = (("interaction", "by\neither"), ("kernels_given_replay", "only by\nkernels"), ("replay_given_compiled", "only by\nreplay"))


def waterfall(study: Study) -> Drawn | None:
    """From eager down to both: what either removes (the interaction), what only kernels remove, what only replay removes."""
    panels = [(name, *found) for name, answer in sorted(part(study, "attribution").items()) if (found := _point(answer))]
    if not panels:
        return None

    def paint(figure: Figure) -> None:
        grid = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, (name, point, contrasts) in zip(grid, panels, strict=True):
            _bars(axes, contrasts)
            axes.set_title(words.clean(f"{name}, {describe(point)}"))

    title = "From eager to compiled and replayed"
    caption = (
        "Time of a step; steady state only: start-up is not included (see the startup ladder). “By either” is what compilation"
        " alone and replay alone would both remove: adding the two gains would count it twice."
    )
    return draw("waterfall", title, caption, _alternative(panels), (7.2 if len(panels) < 3 else 3.2 * len(panels), 3.6), paint)


def describe(point: str) -> str:
    """A point of a factorial in words: a batch size, `decode/8`, or the whole sequence."""
    phase, _, size = point.partition("/")
    if point in _WORDS:
        return _WORDS[point]
    return f"{phase} {size}" if size else f"decode batch {point}"


def complete(contrasts: Any) -> bool:
    """Whether all three steps of the waterfall are known."""
    return all(words.number(dig(contrasts, key, "value")) is not None for key, _ in _STEPS)


def _point(answer: Any) -> tuple[str, Mapping[str, Any]] | None:
    """The smallest decode batch, where overheads show most; else the sequence."""
    found = points(answer)
    batches = [key for key in sort_numeric(found) if key.isdigit()]
    return next(((key, found[key]) for key in [*batches, "sequence"] if complete(found.get(key))), None)


def _bars(axes: Axes, contrasts: Mapping[str, Any]) -> None:
    cells = part(contrasts, "cell_us")
    saved = [float(contrasts[key]["value"]) for key, _ in _STEPS]
    start = words.number(cells.get("E")) or sum(saved)
    end = words.number(cells.get("CR")) or start - sum(saved)
    levels = [start - sum(saved[:count]) for count in range(len(saved) + 1)]
    axes.bar([0, 4], [start, end], color=[palette.INK, palette.SERIES[0]], width=0.6)
    for index, colour in enumerate((palette.SERIES[2], palette.SERIES[1], palette.SERIES[3])):
        top, bottom = max(levels[index : index + 2]), min(levels[index : index + 2])
        axes.bar(
            [index + 1], [top - bottom], bottom=bottom, color=colour, width=0.6, hatch=("", "//", "\\\\")[index], edgecolor=palette.PAPER
        )
        axes.annotate(
            _signed(levels[index + 1] - levels[index]), (index + 1, top), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=9
        )
    for place, value in ((0, start), (4, end)):
        axes.annotate(_short(value), (place, value), xytext=(0, 3), textcoords="offset points", ha="center", fontsize=9)
    axes.set_xticks(range(5), ["eager", *(text for _, text in _STEPS), "both"], fontsize=9)
    axes.set_ylabel("µs a step")
    from_zero(axes)
    axes.margins(y=0.12)


def _signed(change: float) -> str:
    return ("+" if change > 0 else "−") + _short(abs(change))


def _short(us: float) -> str:
    """Narrow enough to stand above a bar."""
    return f"{us / 1000:.3g} ms" if us >= 1000 else f"{us:.0f} µs"


def _alternative(panels: list[tuple[str, str, Mapping[str, Any]]]) -> str:
    sentences = []
    for name, point, contrasts in panels:
        saved = ", ".join(f"{key.replace('_', ' ')} {words.microseconds(contrasts[key]['value'])}" for key, _ in _STEPS)
        sentences.append(f"{name}, {describe(point)}: {saved}.")
    return words.clean(" ".join(sentences))
