"""How often a profiled step entered compiled functions, and how much of it ran outside them.

torch marks each call of a compiled function with a host event `Torch-Compiled Region: <frame>/<compile id>` (2.11 and
2.13). A step whose compiled calls are counted may still do most of its work between them: after a graph break in a
loop the whole frame runs eagerly and only what it calls is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stages.instruments.intervals import Interval, clipped, length, minus, of_event, union

Events = Sequence[dict[str, Any]]
PACKAGE_MARK = "AOTInductor package"  # ours, around each call of a package in a proof process
REGION_MARK = "Torch-Compiled Region"
_REGIONS = (REGION_MARK, PACKAGE_MARK)
_LAUNCHING = ("cuda_runtime", "cuda_driver")


def regions_per_call(events: Events, windows: Sequence[Interval]) -> float:
    """Compiled functions that a marked call entered; packages do not count."""
    begun = [float(event["ts"]) for event in events if event["name"].startswith(REGION_MARK)]
    return sum(begin <= at <= end for begin, end in windows for at in begun) / len(windows)


def share_outside(
    events: Sequence[dict[str, Any]], work: Sequence[dict[str, Any]], windows: Sequence[Interval], device: str
) -> float | None:
    """Share of the work's time outside every region: kernels by their launch; on a CPU operators against whole regions.

    Inductor's fused kernels are no operators there, so a region counts with all its time.

    None without work, and where the session marks no region at all (counters then tell whether anything compiled ran).
    """
    marked = [of_event(event) for event in events if event["name"].startswith(_REGIONS)]
    if not marked:
        return None
    regions = union(span for one in marked for span in clipped([one], _around(windows)))
    if device == "cuda":
        return _kernels_outside(events, work, regions)
    outside = length(minus(union(of_event(event) for event in work), regions))
    return outside / (outside + length(regions)) if work else None


def _kernels_outside(events: Events, work: Events, regions: list[Interval]) -> float | None:
    launched = {event["args"].get("correlation"): float(event["ts"]) for event in events if event.get("cat") in _LAUNCHING}
    total = sum(float(event["dur"]) for event in work)
    outside = sum(float(event["dur"]) for event in work if not _inside(launched.get(event["args"].get("correlation")), regions))
    return outside / total if total else None


def _inside(moment: float | None, regions: list[Interval]) -> bool:
    return moment is not None and any(begin <= moment <= end for begin, end in regions)


def _around(windows: Sequence[Interval]) -> Interval:
    return (min(begin for begin, _ in windows), max(end for _, end in windows)) if windows else (0.0, 0.0)
