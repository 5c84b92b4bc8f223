"""Colours that colour-blind readers tell apart (Okabe and Ito, 2008), with a light and a dark variant of each.

Figures are drawn in the light variants; `drawing` turns every one into a CSS variable, so one SVG serves both.
Identity never rests on colour alone: line styles, markers and direct labels repeat it.
"""

from __future__ import annotations

INK = "#1b1f24"
SOFT = "#6b7480"
GRID = "#d5dae0"
PAPER = "#fefefe"

SERIES = ("#0072b2", "#d55e00", "#009e73", "#b0619a", "#b07a00", "#2f8fc4", "#7a5c3e", "#8a7f00")

_DARK = {
    INK: "#e8ecf1",
    SOFT: "#9aa5b1",
    GRID: "#3a424c",
    PAPER: "#14181d",
    **dict(zip(SERIES, ("#56b4e9", "#ff8a3d", "#2ec99b", "#e39bc9", "#e6b233", "#8fd0f5", "#c4a484", "#f0e442"), strict=True)),
}
_NAMES = {INK: "ink", SOFT: "soft", GRID: "grid", PAPER: "paper"} | {c: f"series-{i}" for i, c in enumerate(SERIES, 1)}

LINE_STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 2)), (0, (3, 5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

VARIABLES = {colour: f"var(--{name})" for colour, name in _NAMES.items()}


def declarations(dark: bool) -> str:
    """CSS custom properties of one scheme: `--ink: #...;` and so on."""
    return " ".join(f"--{name}: {_DARK[colour] if dark else colour};" for colour, name in _NAMES.items())


def mode_colours(names: list[str], baseline: str) -> dict[str, str]:
    """A colour a mode, stable over the figures of one study: ink for the baseline, the series in order for others."""
    others = [name for name in names if name != baseline]
    return {baseline: INK} | {name: SERIES[index % len(SERIES)] for index, name in enumerate(others)}


def mode_style(names: list[str], name: str) -> tuple[object, str]:
    """Line style and marker of a mode."""
    index = names.index(name)
    return LINE_STYLES[index % len(LINE_STYLES)], MARKERS[index % len(MARKERS)]
