"""The coverage strip: which path each step of the sequence took, one strip a mode."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from stages.views import palette, words
from stages.views.document import Study, dig, mode_names
from stages.views.drawing import Drawn, draw

PATHS = {
    "eager": (palette.SOFT, ""),
    "compiled": (palette.SERIES[2], ""),
    "replayed": (palette.SERIES[0], ""),
    "recorded": (palette.SERIES[4], "//"),
    "captured": (palette.SERIES[3], "\\\\"),
    "recompiled": (palette.SERIES[1], "xx"),
    "fallback": (palette.INK, "++"),
}


def coverage(study: Study) -> Drawn | None:
    """Strips in step order; the counts beside them are the evidence's own."""
    strips = [(name, runs) for name in mode_names(study) if (runs := path_runs(study, name))]
    if not strips:
        return None
    used = [path for path in PATHS if any(path == run[0] for _, runs in strips for run in runs)]

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        for place, (_, runs) in enumerate(strips):
            _strip(axes, place, runs)
        axes.set_yticks(range(len(strips)), [words.clean(name) for name, _ in strips], fontsize=9)
        axes.set_ylim(len(strips) - 0.5, -0.5)
        axes.set_xlim(0, max(sum(run[1] for run in runs) for _, runs in strips))
        axes.set_xlabel("step of the sequence")
        axes.tick_params(length=0)
        keys = [Patch(facecolor=PATHS[path][0], hatch=PATHS[path][1], edgecolor=palette.PAPER, label=path) for path in used]
        figure.legend(handles=keys, loc="outside lower center", ncols=7, fontsize=9)

    caption = (
        "The path that run-time evidence shows for every step walked; a mode that claims replay should be one colour."
        " Where paths alternate quickly, a column is split by their shares."
    )
    cut = sum(words.number(dig(study, "modes", name, "coverage", "strip", "num_steps_cut")) or 0 for name, _ in strips)
    caption += f" {words.count(cut)} later steps are counted below but not drawn." if cut else ""
    return draw(
        "coverage", "Path of every step", caption, _alternative(study, [name for name, _ in strips]), (7.2, 1.3 + 0.34 * len(strips)), paint
    )


def path_runs(study: Study, name: str) -> list[tuple[str, float]]:
    """(path, number of steps) in order; empty where no steps were walked."""
    rows = dig(study, "modes", name, "coverage", "strip", "runs") or []
    return [(str(path), float(count)) for path, _, _, count in rows]


def _strip(axes: Axes, place: int, runs: list[tuple[str, float]]) -> None:
    """One collection of rectangles a path; where paths alternate faster than the eye, their shares are stacked."""
    rectangles: dict[str, list[Rectangle]] = {}
    start = 0.0
    for width, shares in binned(runs):
        bottom = place + 0.35
        for path in sorted(shares, key=_order):
            bottom -= 0.7 * shares[path]
            rectangles.setdefault(path, []).append(Rectangle((start, bottom), width, 0.7 * shares[path]))
        start += width
    for path, found in rectangles.items():
        colour, hatch = PATHS.get(path, (palette.INK, ""))
        axes.add_collection(PatchCollection(found, facecolor=colour, edgecolor=palette.PAPER, hatch=hatch, linewidth=0), autolim=False)


def binned(runs: list[tuple[str, float]], most: int = 240) -> list[tuple[float, dict[str, float]]]:
    """(width, share of each path), neighbours of one path joined; beyond `most` runs, that many equal bins."""
    joined: list[tuple[str, float]] = []
    for path, length in runs:
        joined.append((path, length + joined.pop()[1] if joined and joined[-1][0] == path else length))
    if len(joined) <= most:
        return [(length, {path: 1.0}) for path, length in joined]
    width = sum(length for _, length in joined) / most
    bins: list[dict[str, float]] = [{} for _ in range(most)]
    start = 0.0
    for path, length in joined:
        for index in range(int(start / width), min(most, int((start + length) / width) + 1)):
            inside = min(start + length, (index + 1) * width) - max(start, index * width)
            bins[index][path] = bins[index].get(path, 0.0) + max(0.0, inside) / width
        start += length
    return [(width, _visible(found)) for found in bins]


def _visible(shares: dict[str, float], least: float = 0.15) -> dict[str, float]:
    """Shares that sum to 1, none too thin to be seen: one fallback in a bin must show."""
    raised = {path: max(share, least) for path, share in shares.items() if share > 0}
    return {path: share / sum(raised.values()) for path, share in raised.items()}


def _order(path: str) -> int:
    return list(PATHS).index(path) if path in PATHS else len(PATHS)


def _alternative(study: Study, names: list[str]) -> str:
    sentences = []
    for name in names:
        counts: dict[str, float] = {}
        for path, length in path_runs(study, name):
            counts[path] = counts.get(path, 0.0) + length
        sentences.append(f"{name}: {', '.join(f'{path} {words.count(n)}' for path, n in counts.items())}.")
    return words.clean(" ".join(sentences))
