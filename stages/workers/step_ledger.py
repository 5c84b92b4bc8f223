"""One line of account a step: what the counters gained in it, what torch said in it, how long it took."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from stages.core.records.path import Phase

MOST_EVENTS = 200
CHURNING = {"tree_record": "num_recordings", "capture": "num_captures", "compilation": "num_recompiles"}


@dataclass
class StepLedger:
    """Filled step by step by the walk; `document()` is JSON. `num_planned` is the number of steps the walk may take."""

    counters: Any
    log: Any
    replay: str
    num_planned: int
    paths: list[tuple[str, Phase, int]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    shapes: dict[tuple[Phase, int], dict[str, Any]] = field(default_factory=dict)
    windows: list[dict[str, Any]] = field(default_factory=list)
    last_churn: int | None = None
    adapters: set[int] = field(default_factory=set)
    after_switch: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Start from what the counters hold now."""
        self._before = self.start = self.counters.snapshot()
        self._num_said = len(self.log.said)
        self._width = 100 if self.num_planned <= 2000 else 1000

    def add(self, phase: Phase, size: int, padded_size: int, wall_s: float, adapter_id: int | None = None, switched: bool = False) -> None:
        """Account for the step that just ran; `size` is real: active sequences or prompt tokens.

        `adapter_id`: the adapter it ran under; `switched`: it was switched to just before.
        """
        after = self.counters.snapshot()
        did = after - self._before
        path = path_of(did, self.replay)
        said = [text for _, text in self.log.said[self._num_said :]]
        self._before, self._num_said = after, len(self.log.said)
        if (said or path in ("recorded", "captured", "recompiled", "fallback")) and len(self.events) < MOST_EVENTS:
            step = {"step": len(self.paths), "phase": phase, "size": size, "padded_size": padded_size, "adapter_id": adapter_id}
            self.events.append({**step, "path": path, "reasons": said[:5]})
        self._cover(did, path, phase, size, padded_size, wall_s)
        self._count_churn(did, wall_s)
        self.paths.append((path, phase, padded_size))
        if adapter_id is not None:
            self.adapters.add(adapter_id)
            self.after_switch[path] += switched

    def document(self) -> dict[str, Any]:
        """Runs of equal paths, shapes, events and churn windows."""
        runs = [(key, sum(1 for _ in same)) for key, same in groupby(self.paths)]
        return {
            "path_runs": [{"path": path, "phase": phase, "padded_size": size, "count": count} for (path, phase, size), count in runs],
            "counts": dict(self._before - self.start),
            "since_spawn": dict(self._before),
            "events": self.events,
            "shapes": [{"phase": phase, "padded_size": size, **shape} for (phase, size), shape in sorted(self.shapes.items())],
            "windows": self.windows,
            "last_churn": self.last_churn,
            "adapters": self._adapter_use(),
        }

    def _adapter_use(self) -> dict[str, Any] | None:
        taken = {path: count for path, count in self.after_switch.items() if count}
        use = {"num_adapters": len(self.adapters), "num_switches": sum(taken.values()), "paths_after_switch": taken}
        return use if self.adapters else None

    def _cover(self, did: Counter[str], path: str, phase: Phase, size: int, padded_size: int, wall_s: float) -> None:
        shape = self.shapes.setdefault((phase, padded_size), {"paths": {}, "compiled_calls": Counter(), "num_replays": 0})
        share = shape["paths"].setdefault(path, {"num_steps": 0, "num_tokens": 0, "wall_s": 0.0})
        for key, gained in (("num_steps", 1), ("num_tokens", size), ("wall_s", wall_s)):
            share[key] += gained
        shape["num_replays"] += did["replay"]
        calls = {key.partition(":")[2]: count for key, count in did.items() if key.startswith("compiled_call:")}
        shape["compiled_calls"].update(calls)

    def _count_churn(self, did: Counter[str], wall_s: float) -> None:
        step = len(self.paths)
        if step % self._width == 0:
            empty = {"first_step": step, "num_steps": 0, **dict.fromkeys(CHURNING.values(), 0), "wall_s": 0.0}
            self.windows.append(empty)
        window = self.windows[-1]
        window["num_steps"] += 1
        gained = {**did, "capture": max(0, did["capture"] - did["tree_record"])}  # a recording is one capture
        churned = {name: gained.get(counter, 0) for counter, name in CHURNING.items()}
        if any(churned.values()):
            self.last_churn = step
            for name, count in (*churned.items(), ("wall_s", wall_s)):
                window[name] += count


def path_of(did: Counter[str], replay: str) -> str:
    """The path of one step from what the counters gained in it.

    `fallback`: the mode replays, and this step ran without (or only partly with) a replay; or it calls packages, and none
    was built for this shape.
    """
    if did["tree_record"]:
        return "recorded"
    if did["capture"]:
        return "captured"
    if did["compilation"]:
        return "recompiled"
    if did["unsupported_call"]:
        return "fallback"
    if replay == "trees":
        return "replayed" if did["tree_run"] and did["tree_replay"] == did["tree_run"] == did["replay"] else "fallback"
    if replay == "manual":
        return "replayed" if did["replay"] == 1 and not did["compiled_call"] else "fallback"
    if did["replay"]:
        return "replayed"
    return "compiled" if did["compiled_call"] or did["package_call"] else "eager"
