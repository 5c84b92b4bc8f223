"""What the host does in a step that replays a CUDA graph, from torch's own marks in a profile (2.11 and 2.13).

Names: `TorchDynamo Cache Lookup` (guards), `Torch-Compiled Region` (a compiled function), `## Call CompiledFxGraph` (its
graph; with CUDAGraph Trees their checks, the copies of inputs, and the launch), `cudaGraphLaunch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stages.core.records.profiled import ReplayCost
from stages.instruments.compiled_regions import REGION_MARK
from stages.instruments.intervals import Interval, clipped, length, minus, of_event, union

Events = Sequence[dict[str, Any]]
_HOST = ("cuda_runtime", "cuda_driver", "cpu_op")
_COPIES = ("aten::copy_", "aten::_foreach_copy_", "cudaMemcpyAsync")


def replay_cost(events: Events, windows: Sequence[Interval]) -> ReplayCost | None:
    """Of the marked call whose sum is the median: the first ones of a session pay for it. None where no call launched a graph."""
    host = [event for event in events if event.get("cat") in _HOST]
    by_call = [[event for event in host if begin <= event["ts"] <= end] for begin, end in windows]
    if not any(_is_launch(event) for found in by_call for event in found):
        return None
    parts = [_parts(found, window) for found, window in zip(by_call, windows, strict=True)]
    return ReplayCost(**sorted(parts, key=lambda part: sum(part.values()))[len(parts) // 2])


def _parts(host: Events, window: Interval) -> dict[str, float]:
    remaining = minus([window], _spans([event for event in host if "Synchronize" in event["name"]], window))
    kinds = {
        "graph_launch_us": [event for event in host if _is_launch(event)],
        "input_copies_us": [event for event in host if event["name"].startswith(_COPIES)],
        "guards_us": [event for event in host if event["name"].startswith("TorchDynamo Cache Lookup")],
        "tree_checks_us": [event for event in host if event["name"].startswith("## Call CompiledFxGraph")],
        "wrapper_us": [event for event in host if event["name"].startswith(REGION_MARK)],
    }
    found = {}
    for key, events in kinds.items():
        left = minus(remaining, _spans(events, window))
        found[key], remaining = length(remaining) - length(left), left
    return {**found, "other_us": length(remaining)}


def _is_launch(event: dict[str, Any]) -> bool:
    return "GraphLaunch" in event["name"]


def _spans(events: Events, window: Interval) -> list[Interval]:
    return clipped(union(of_event(event) for event in events), window)
