"""What torch's compiler and CUDA graphs did in this process while it was watched, and whether that was expected.

Compilations, recompiles and graph breaks with their reasons, calls of compiled functions, captures, recordings and
replays, CUDA graphs that were skipped. A function compiled before the watch began is not wrapped: its replays are
counted, its plain compiled calls are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from stages.core.errors import UserError
from stages.instruments.compiler_log import CompilerLog
from stages.instruments.path_counters import PathCounters
from stages.instruments.seen_requests import requests_of, write_requests
from stages.instruments.token_shapes import TokenShapes

_MOST_REASONS = 20
_COUNTS = {
    "num_compilations": "compilation",
    "num_compiled_calls": "compiled_call",
    "num_captures": "capture",
    "num_recordings": "tree_record",
    "num_replays": "replay",
}
COUNT_NAMES = (
    "num_compilations",
    "num_recompiles",
    "num_recompile_limits",
    "num_graph_breaks",
    *list(_COUNTS)[1:],
    "num_cudagraph_skips",
)


class ExpectationFailed(AssertionError):
    """What was counted is not what was expected. `reasons`: one sentence each, with torch's own reasons."""

    def __init__(self, reasons: list[str]) -> None:
        """Join the reasons, one a line."""
        super().__init__("\n".join(reasons))
        self.reasons = reasons


@dataclass
class Ledger:
    """Counts since the watch began, or since `restart()`; they stand still once it is over."""

    counters: PathCounters = field(default_factory=PathCounters)
    log: CompilerLog = field(default_factory=CompilerLog)
    shapes: TokenShapes = field(default_factory=TokenShapes)
    _began: Counter[str] = field(default_factory=Counter)
    _ended: Counter[str] | None = None

    def restart(self) -> None:
        """Count from now on only: call it after warm-up, so that first compilations and recordings are left out."""
        self._began = self.counters.snapshot()
        for lines in self.log.lines.values():
            lines.clear()
        self.shapes.seen.clear()

    def close(self) -> None:
        """The watch is over: later calls of functions that were compiled in it count no more."""
        self._ended = self.counters.snapshot()

    def counts(self) -> dict[str, int]:
        """Every count by name. Captures include those that CUDAGraph Trees make to record."""
        gained = self._gained()
        logged = {name: len(lines) for name, lines in self.log.lines.items()}
        return {name: gained[counter] for name, counter in _COUNTS.items()} | {
            "num_recompiles": logged["recompiles"],
            "num_recompile_limits": logged["recompile_limits"],
            "num_graph_breaks": max(gained["graph_break"], logged["graph_breaks"]),  # each misses some
            "num_cudagraph_skips": max(gained["cudagraph_skip"], len(self.log.skips())),
        }

    def replayed_share(self) -> float | None:
        """Replays / (replays + runs through Trees that were none + compiled calls outside Trees); None when there were none."""
        gained = self._gained()
        manual = max(0, gained["replay"] - gained["tree_replay"] - gained["tree_record"])  # a recording replays once
        outside = gained["compiled_call"] - gained["tree_call"]
        total = manual + gained["tree_run"] + outside
        return (manual + gained["tree_replay"]) / total if total else None

    def reasons(self) -> dict[str, list[str]]:
        """What torch said, in order: `recompiles`, `recompile_limits`, `graph_breaks`, `cudagraph_skips` (20 each, 500 characters)."""
        lines = {name: self.log.lines[name] for name in ("recompiles", "recompile_limits", "graph_breaks")}
        return {name: found[:_MOST_REASONS] for name, found in (lines | {"cudagraph_skips": self.log.skips()}).items()}

    def summary(self) -> dict[str, Any]:
        """Counts, `replayed_share`, `reasons`, and `missing`: names that this torch lacks, so that their counts stay 0."""
        return {**self.counts(), "replayed_share": self.replayed_share(), "reasons": self.reasons(), "missing": self.counters.missing}

    def write_trace(self, file: str | Path) -> int:
        """Write the requests that the steps show as a canonical trace (CSV); their number.

        Raises UserError when the steps show no two prompts at different times.
        """
        return write_requests(Path(file), requests_of(self.shapes.steps()))

    def expect(self, *, min_replayed: float | None = None, **counts: int) -> None:
        """Raise ExpectationFailed unless the counts are these (`num_recompiles=0`) and the replayed share is at least that.

        Nothing counted is no replay: `min_replayed` then fails. A wrong name of a count is a TypeError, a share outside
        0 to 1 and a count that is no whole number of 0 or more a UserError.
        """
        found = self.counts()
        unknown = sorted(set(counts) - set(found))
        if unknown:
            raise TypeError(f"no such count: {unknown[0]}; there are {', '.join(found)}")
        _check_expected(min_replayed, counts)
        reasons = [self._explained(name, counts[name], found[name]) for name in counts if found[name] != counts[name]]
        reasons += self._replays_too_few(min_replayed)
        reasons += [f"this torch has no {name}: its calls cannot be counted" for name in self.counters.missing]
        if reasons:
            raise ExpectationFailed(reasons)

    def _gained(self) -> Counter[str]:
        now = self.counters.snapshot() if self._ended is None else self._ended
        return now - self._began

    def _explained(self, name: str, expected: int, found: int) -> str:
        said = self.reasons().get(name.removeprefix("num_"), [])
        return "\n  ".join([f"{name}: expected {expected}, counted {found}", *said])

    def _replays_too_few(self, least: float | None) -> list[str]:
        share = self.replayed_share()
        if least is None or (share is not None and share >= least):
            return []
        counted = "nothing compiled or replayed ran" if share is None else f"counted {share:.4g}"
        return ["\n  ".join([f"replayed share: expected at least {least:.4g}, {counted}", *self.reasons()["cudagraph_skips"]])]


def _check_expected(min_replayed: Any, counts: Mapping[str, Any]) -> None:
    """Raise UserError for what no watched program could meet or miss."""
    if min_replayed is not None and not (_is_number(min_replayed, Real) and 0 <= min_replayed <= 1):
        raise UserError("min_replayed", "must be a share from 0 to 1", min_replayed, "For 99 % write min_replayed=0.99.")
    for name, expected in counts.items():
        if not (_is_number(expected, Integral) and expected >= 0):
            raise UserError(name, "must be a whole number, 0 or more", expected, f"For none at all write {name}=0.")


def _is_number(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


@contextmanager
def watch() -> Iterator[Ledger]:
    """Count in this process until the block ends; torch's classes and loggers are then as they were. Imports torch."""
    ledger = Ledger()
    try:
        ledger.counters.install()  # imports the modules whose loggers are heard
        ledger.log.install()
        ledger.shapes.install()
        ledger.restart()
        yield ledger
    finally:
        ledger.close()
        ledger.shapes.remove()
        ledger.log.remove()
        ledger.counters.remove()
