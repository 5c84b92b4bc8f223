"""Memory of a worker alone on the device, after every planned shape ran."""

from __future__ import annotations

from matplotlib.figure import Figure

from stages.views import palette, words
from stages.views.document import Study, mode_names, part
from stages.views.drawing import Drawn, draw, from_zero, stacked

PARTS = ("weights", "KV cache", "graph pools", "activations and workspace", "outside the allocator")
_COLOURS = (palette.SOFT, palette.SERIES[0], palette.SERIES[1], palette.SERIES[2], palette.SERIES[4])
_HATCHES = ("", "", "//", "\\\\", "xx")
_GIB = 2**30


def memory(study: Study) -> Drawn | None:
    """Stacked bytes, one bar a mode; None where no worker was measured."""
    bars = {name: found for name in mode_names(study) if (found := breakdown(study, name))}
    if not bars:
        return None

    def paint(figure: Figure) -> None:
        axes = figure.subplots()
        stacked(axes, [{what: size / _GIB for what, size in found.items()} for found in bars.values()], _COLOURS, _HATCHES)
        axes.set_yticks(range(len(bars)), [words.clean(name) for name in bars], fontsize=9)
        axes.set_xlabel("GiB")
        from_zero(axes, "x")
        figure.legend(loc="outside lower center", ncols=3, fontsize=9)

    caption = (
        "One worker alone on the device, at its peak (host memory on a CPU)."
        " Graph pools are what replay adds for as long as the worker lives."
    )
    sentence = " ".join(
        f"{name}: {words.size(sum(found.values()))}, of it graph pools {words.size(found['graph pools'])}." for name, found in bars.items()
    )
    return draw("memory", "Memory of a worker", caption, words.clean(sentence), (7.2, 1.4 + 0.32 * len(bars)), paint)


def breakdown(study: Study, name: str) -> dict[str, float]:
    """Bytes by use; what the peak holds beyond weights, KV cache and pools counts as activations and workspace."""
    found = part(study, "modes", name, "memory")
    if words.number(found.get("peak_bytes")) is None:
        return {}
    weights, cache, pools, outside, peak = (
        words.number(found.get(key)) or 0.0
        for key in ("weights_bytes", "kv_cache_bytes", "graph_pool_bytes", "outside_allocator_bytes", "peak_bytes")
    )
    return dict(zip(PARTS, (weights, cache, pools, max(0.0, peak - weights - cache - pools), outside), strict=True))
