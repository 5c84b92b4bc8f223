"""From a matplotlib figure to an SVG text that is the same byte for byte, readable in light and dark, and has words.

No clock and no random id goes in (`svg.hashsalt`, no date, no metadata); ids are prefixed by the figure's name, so
that several figures live in one page.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stages.views import palette

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "opmode",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 11,
    "text.color": palette.INK,
    "axes.labelcolor": palette.INK,
    "axes.edgecolor": palette.SOFT,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "figure.edgecolor": "none",
    "grid.color": palette.GRID,
    "xtick.color": palette.INK,
    "ytick.color": palette.INK,
    "legend.frameon": False,
    "hatch.color": palette.INK,
}


@dataclass(frozen=True)
class Drawn:
    """A figure ready for every view. `svg` is inline text; `alternative` says in words what the figure shows."""

    name: str
    title: str
    caption: str
    alternative: str
    svg: str

    def standalone(self) -> str:
        """The same figure as a file of its own, with both colour schemes inside."""
        light, dark = palette.declarations(dark=False), palette.declarations(dark=True)
        style = f"<style>:root {{ {light} }} @media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}</style>"
        paper = '<rect width="100%" height="100%" style="fill: var(--paper)"/>'
        head, mark, rest = self.svg.partition("</desc>\n")
        return f'<?xml version="1.0" encoding="utf-8"?>\n{head}{mark}{style}\n{paper}\n{rest}'


def draw(name: str, title: str, caption: str, alternative: str, size: tuple[float, float], paint: Callable[[Figure], None]) -> Drawn:
    """Paint on a figure of `size` inches and turn it into a `Drawn`."""
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()  # a user's matplotlibrc must not change the bytes
        matplotlib.rcParams.update(_STYLE)
        # the reader's fonts draw the text, not matplotlib's
        warnings.filterwarnings("ignore", message=r".*Glyph .* missing from font")
        figure = Figure(figsize=size, layout="constrained")
        paint(figure)
        buffer = io.StringIO()
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    return Drawn(name, title, caption, alternative, _tidy(buffer.getvalue(), name, title, alternative))


def _tidy(text: str, name: str, title: str, alternative: str) -> str:
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", text)
    for colour, variable in palette.VARIABLES.items():
        text = text.replace(colour, variable)
    words = f'<title id="{name}-title">{escape(title)}</title>\n<desc id="{name}-desc">{escape(alternative)}</desc>\n'
    opening, rest = text.split(">", 1)
    opening = re.sub(r' (width|height)="[^"]*"', "", opening)
    return f'{opening} role="img" aria-labelledby="{name}-title {name}-desc">\n{words}{rest.strip()}\n'


def from_zero(axes: Axes, axis: str = "y") -> None:
    """Start an axis at zero, with grid lines across it."""
    (axes.set_ylim if axis == "y" else axes.set_xlim)(0, None)
    axes.grid(True, axis="y" if axis == "y" else "x", linewidth=0.6)
    axes.tick_params(length=0)


def stacked(axes: Axes, rows: Sequence[Mapping[str, float]], colours: Sequence[str], hatches: Sequence[str]) -> list[float]:
    """Horizontal bars, top down, each row's parts end to end (all rows name the same parts); gives the rows' totals."""
    totals = [0.0] * len(rows)
    for part, colour, hatch in zip(rows[0], colours, hatches, strict=True):
        widths = [row[part] for row in rows]
        if any(widths):
            style: dict[str, Any] = {"color": colour, "hatch": hatch, "edgecolor": palette.PAPER, "linewidth": 0.5}
            axes.barh(range(len(rows)), widths, left=totals, label=part, height=0.7, **style)
        totals = [total + width for total, width in zip(totals, widths, strict=True)]
    axes.set_ylim(len(rows) - 0.4, -0.6)
    return totals
