"""The startup ladder: what a worker does between spawn and ready, from each cache state."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from stages.analysis.lifetimes import CACHES
from stages.views import palette, words
from stages.views.document import Study, mode_names, part
from stages.views.drawing import Drawn, draw, from_zero, stacked

GROUPS = {
    "import and device": ("import_s", "device_init_s"),
    "load weights": ("load_s",),
    "Dynamo, AOTAutograd, export": ("export_s", "dynamo_s", "aot_autograd_s"),
    "Inductor, kernels, packages": ("inductor_s", "kernel_compile_s", "package_load_s"),
    "autotune": ("autotune_s",),
    "record, capture": ("record_s", "capture_s"),
    "execute": ("execute_s",),
    "unaccounted": ("unaccounted_s",),
}
_COLOURS = (palette.SOFT, *palette.SERIES[:6], palette.GRID)
_HATCHES = ("", "", "//", "", "xx", "\\\\", "", "")


def ladder(study: Study) -> Drawn | None:
    """Stacked phases, one bar a mode and cache state; None where nothing started."""
    bars = [(name, state, phases) for name in mode_names(study) for state in CACHES if (phases := grouped(study, name, state))]
    if not bars:
        return None

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        left = stacked(axes, [phases for _, _, phases in bars], _COLOURS, _HATCHES)
        for place, total in enumerate(left):
            axes.annotate(words.seconds(total), (total, place), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
        axes.set_yticks(range(len(bars)), [words.clean(f"{name}, {state}") for name, state, _ in bars], fontsize=9)
        axes.set_xlabel("s from spawn to ready")
        from_zero(axes, "x")
        axes.margins(x=0.12)
        figure.legend(loc="outside lower center", ncols=4, fontsize=9)

    caption = (
        "Exclusive time on the worker's main thread until every planned shape runs without compiling, recording or tuning."
        " Where a state was started more than once: the start nearest to the median."
    )
    words_of = " ".join(f"{name} {state}: ready after {words.seconds(sum(phases.values()))}." for name, state, phases in bars)
    return draw("ladder", "Startup ladder", caption, words.clean(words_of), (7.2, 1.6 + 0.32 * len(bars)), paint)


def grouped(study: Study, name: str, state: str) -> Mapping[str, float]:
    """Seconds of one start by group of phases; empty where that start was not made."""
    start = part(study, "modes", name, "startup", state)
    flat = {**start, **part(start, "phases")}
    if words.number(start.get("ready_s")) is None:
        return {}
    return {group: sum(max(0.0, words.number(flat.get(key)) or 0.0) for key in keys) for group, keys in GROUPS.items()}
