"""From a profiler session to numbers: kernels by the launch that sent them, busy and idle time of a step.

A kernel belongs to the runtime call with its correlation id: to a replay if that call is `cudaGraphLaunch`, to an
individual launch if it is `*LaunchKernel*`, else it is unattributed (torch 2.11's profiler has no graph ids). Busy
time is the union of device intervals, never their sum. On a CPU, operators' intervals stand for kernels.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages.core.records.path import KernelTime, ProfiledStep
from stages.instruments.compiled_regions import REGION_MARK, regions_per_call, share_outside
from stages.instruments.intervals import Interval, clipped, length, minus, of_event, union
from stages.instruments.replay_cost import replay_cost

NUM_KERNELS = 25  # by name, kept a step
LONGEST_NAME = 240  # ATen's kernels of one template differ late
_DEVICE = ("kernel", "gpu_memcpy", "gpu_memset")
_OPERATORS = ("cpu_op",)
_COMPILING = ("dynamo_timed", "CUDAGraphNode.record")
_NOT_WORK = ("TorchDynamo Cache Lookup", REGION_MARK, "Pregraph bytecode")  # guards and wrappers, not operators
_ATTENTION = ("attention", "fmha", "flash", "sdpa", "mha")


@dataclass
class ProfiledCalls:
    """The complete events of one session (Chrome trace format: ts and dur in us)."""

    events: list[dict[str, Any]]

    @classmethod
    def of(cls, session: Any, keep: Path | None = None) -> ProfiledCalls:
        """Read a `torch.profiler.profile` through its own export; `keep`: where a compressed copy goes, which Perfetto opens."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "profile.json"
            session.export_chrome_trace(str(file))
            content = file.read_bytes()
        if keep:
            keep.parent.mkdir(parents=True, exist_ok=True)
            keep.write_bytes(gzip.compress(content, compresslevel=3))
        document = json.loads(content)
        return cls([event for event in document["traceEvents"] if event.get("ph") == "X" and event.get("dur", -1) >= 0])

    def windows(self, shape: str) -> list[Interval]:
        """Host intervals of the marked calls of one shape."""
        return [of_event(event) for event in self.events if event["name"] == f"opmode {shape}" and event.get("cat") == "user_annotation"]

    def within(self, window: Interval, categories: tuple[str, ...]) -> list[dict[str, Any]]:
        """Events of these categories that begin inside a window."""
        return [event for event in self._of(categories) if window[0] <= event["ts"] <= window[1]]

    def _of(self, categories: tuple[str, ...]) -> list[dict[str, Any]]:
        return [event for event in self.events if event.get("cat") in categories and not event["name"].startswith(_NOT_WORK)]


def read_profile(calls: ProfiledCalls, shapes: Iterable[str], num_calls: int, device: str) -> list[ProfiledStep]:
    """One averaged step a shape. Raises AssertionError when a marked call is missing from the session."""
    steps = []
    for shape in shapes:
        windows = calls.windows(shape)
        assert len(windows) == num_calls, f"the profile holds {len(windows)} of {num_calls} calls of {shape}"
        steps.append(_step(calls, shape, windows, device))
    return steps


def _step(calls: ProfiledCalls, shape: str, windows: list[Interval], device: str) -> ProfiledStep:
    phase, _, size = shape.partition("/")
    categories = _DEVICE if device == "cuda" else _OPERATORS
    by_call = [calls.within(window, categories) for window in windows]
    work = [event for found in by_call for event in found]
    launches = _launches(calls, windows)
    launched = Counter(launches.get(event["args"].get("correlation"), "unattributed") for event in work) if device == "cuda" else Counter()
    count = len(windows)
    times = [_times(calls, window, categories) for window in windows]
    graph_launches = sum(1 for window in windows for event in calls.within(window, ("cuda_runtime",)) if "GraphLaunch" in event["name"])
    return ProfiledStep(
        phase="decode" if phase == "decode" else "prefill",
        size=int(size),
        num_calls=count,
        **{key: sum(time[key] for time in times) / count for key in times[0]},
        kernels_per_call=len(work) / count,
        graph_launches_per_call=graph_launches / count,
        graph_kernels_per_call=launched["graph"] / count,
        individual_kernels_per_call=launched["individual"] / count,
        unattributed_kernels_per_call=launched["unattributed"] / count,
        attention_kernels=sorted({event["name"][:120] for event in work if any(word in event["name"].lower() for word in _ATTENTION)}),
        top_kernels=_top(work, count),
        graph_kernels_range=_graph_kernels(by_call, launches) if graph_launches else None,
        share_outside_regions=share_outside(calls.events, work, windows, device),
        compiled_regions_per_call=regions_per_call(calls.events, windows),
        kernels_us=sum(float(event["dur"]) for event in work) / count,
        replay_cost=replay_cost(calls.events, windows) if graph_launches else None,
    )


def _graph_kernels(by_call: list[list[dict[str, Any]]], launches: dict[int, str]) -> tuple[int, int]:
    """Fewest and most kernels of graph launches in a profiled call: replays of the same graphs have the same number."""
    counts = [sum(launches.get(event["args"].get("correlation")) == "graph" for event in found) for found in by_call]
    return min(counts), max(counts)


def _launches(calls: ProfiledCalls, windows: list[Interval]) -> dict[int, str]:
    kinds: dict[int, str] = {}
    for window in windows:
        for event in calls.within(window, ("cuda_runtime", "cuda_driver")):
            kind = "graph" if "GraphLaunch" in event["name"] else "individual"
            if kind == "graph" or any(word in event["name"] for word in ("LaunchKernel", "Memcpy", "Memset")):
                kinds[event["args"].get("correlation")] = kind
    return kinds


def _times(calls: ProfiledCalls, window: Interval, categories: tuple[str, ...]) -> dict[str, float]:
    """Wall, busy, and the idle time by what the host did then: compile > launch > wait > Python, each once."""
    host = calls.within(window, ("cuda_runtime", "cuda_driver", "cpu_op", "python_function", "user_annotation"))
    compiling = [event for event in host if any(word in event["name"] for word in _COMPILING) or event["name"] == "dynamo"]
    busy = clipped(union(of_event(event) for event in calls.within(window, categories)), window)
    if categories == _OPERATORS:  # the compiler's own regions look like operators
        busy = minus(busy, union(of_event(event) for event in compiling))
    idle = minus([window], busy)
    kinds = {
        "host_compile_us": compiling,
        "host_launch_us": [event for event in host if "Launch" in event["name"] or "Memcpy" in event["name"] or "Memset" in event["name"]],
        "host_wait_us": [event for event in host if "Synchronize" in event["name"]],
    }
    result = {"wall_us": window[1] - window[0], "busy_us": length(busy)}
    for key, events in kinds.items():
        spans = clipped(union(of_event(event) for event in events), window)
        remaining = minus(idle, spans)
        result[key], idle = length(idle) - length(remaining), remaining
    result["host_python_us"] = length(idle)
    return result


def _top(work: list[dict[str, Any]], num_calls: int) -> list[KernelTime]:
    total: Counter[str] = Counter()
    count: Counter[str] = Counter()
    for event in work:
        name = event["name"][:LONGEST_NAME]
        total[name] += event["dur"]
        count[name] += 1
    return [
        KernelTime(name=name, total_us=time / num_calls, count=count[name] / num_calls) for name, time in total.most_common(NUM_KERNELS)
    ]
