"""Calls one, two and three of every shape, and what else could have made a start warm."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stages.analysis.lifetimes import CACHES
from stages.views import words
from stages.views.document import Study, mode_names, part
from stages.views.tables.table import Table, dropped_empty

NUM_CALLS = 3


def first_calls(study: Study) -> Table:
    """Seconds of the first three calls of each shape, from each cache state; modes that compile or replay nothing have little to show."""
    rows = []
    for name in mode_names(study):
        calls = {state: part(study, "modes", name, "startup", state, "calls_s") for state in CACHES}
        for shape in sorted({shape for found in calls.values() for shape in found}, key=_by_size):
            cells = [_call(calls[state], shape, index) for state in CACHES for index in range(NUM_CALLS)]
            rows.append([f"{name}, {shape.replace('/', ' ')}", *cells])
    columns = [f"{state}: {word}" for state in CACHES for word in ("first", "second", "third")]
    note = (
        "Time of a call, synchronised, of the start nearest to the median. The first one compiles; with CUDAGraph Trees the"
        " second records and the third is the first replay; captures of our own lie between the two and are not in them."
    )
    return dropped_empty(Table("First calls of each shape", ["mode, shape", *columns], rows, note))


def _call(calls: Mapping[str, Any], shape: str, index: int) -> str:
    found = calls.get(shape) or []
    seconds = words.number(found[index]) if index < len(found) else None
    if seconds is None:
        return words.ABSENT
    return words.plain(seconds, "s") if seconds >= 1 else words.plain(1e3 * seconds, "ms")


def _by_size(shape: str) -> tuple[str, float, str]:
    phase, _, size = shape.partition("/")
    return phase, float(size) if size.isdecimal() else 0.0, shape


def beside(study: Study) -> Table:
    """Caches beside the compile cache's folder as each start found them, and the work on other threads."""
    rows = []
    for name in mode_names(study):
        for state in CACHES:
            start = part(study, "modes", name, "startup", state)
            found = part(start, "cache_state")
            if found:
                rows.append([f"{name}, {state}", *_states(found), words.plain(start.get("pool_s"), "s")])
    note = (
        "Remote caches and profile-guided optimisation (PGO, by job id) would make a start warm behind its back. The page cache is"
        " not dropped: major faults are pages that the process waited for the disk to bring. Compiler threads: beside the main one."
    )
    columns = ["mode, caches", "remote caches", "PGO job", "driver JIT cache", "major page faults", "compiler threads"]
    return dropped_empty(Table("Caches beside", columns, rows, note, frozenset({"remote caches", "PGO job", "driver JIT cache"})))


def _states(found: Mapping[str, Any]) -> list[str]:
    remote = part(found, "remote_caches")
    on = [name for name, is_on in sorted(remote.items()) if is_on]
    return [
        ", ".join(on) or ("off" if remote else words.ABSENT),
        str(found.get("pgo_job_id") or ("none" if remote else words.ABSENT)),
        _driver(found),
        words.count(found.get("num_major_faults")),
    ]


def _driver(found: Mapping[str, Any]) -> str:
    if found.get("driver_jit_disabled"):
        return "disabled"
    return f"{words.count(found.get('driver_jit_files'))} files, {words.size(found.get('driver_jit_bytes'))}"
