"""What each path took of the walked trace, whether it settled, and which sizes to capture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stages.views import words
from stages.views.document import Study, dig, mode_names, part
from stages.views.tables.table import Table, dropped_empty, pairs

_UNITS = {"num_steps": "of steps", "num_tokens": "of tokens", "wall_s": "of time"}


def shares(study: Study) -> Table:
    """Share of each path, padding, and sizes that nobody used, a mode."""
    rows = []
    for name, found in _covered(study):
        if part(found, "shares"):
            steps = f"{words.count(found.get('steps_walked'))} of {words.count(found.get('steps_in_trace'))}"
            taken = [pairs(part(found, "shares", unit), words.percent) for unit in _UNITS]
            waste, unused = (pairs(part(found, key), show) for key, show in (("padding_waste", words.percent), ("unused_sizes", _sizes)))
            rows.append([name, steps, *taken, waste, unused, pairs(part(found, "past_the_largest"), words.count)])
    columns = ["mode", "steps walked", *_UNITS.values(), "padding", "sizes never used", "steps past the largest"]
    note = (
        "Share of each path; time is host time with counters on and a synchronisation a step: shares, not speeds."
        " Padding: rows or prompt tokens that were computed for nobody."
    )
    return dropped_empty(Table("Coverage", columns, rows, note, frozenset(columns[1:])))


def churn(study: Study) -> Table:
    """Recordings, captures and recompiles along the walk, and whether memory grew."""
    rows = []
    for name, found in _covered(study):
        seen = part(found, "churn")
        if seen:
            settled = words.count(seen.get("settled_after_steps"))
            events = [
                words.count(seen.get("num_events")),
                words.plain(seen.get("events_per_1000_steps")),
                words.seconds(seen.get("wall_s")),
            ]
            rows.append([name, str(seen.get("verdict")).replace("_", " "), settled, *events, _growth(found), _adapters(found)])
    columns = ["mode", "verdict", "after steps", "events", "per 1,000 steps", "time of their steps", "memory", "adapters"]
    note = "Recordings, captures and recompiles after the worker was ready. Settled: none in the second half of the walk."
    return dropped_empty(Table("Churn", columns, rows, note, frozenset({"verdict", "memory", "adapters"})))


def advice(study: Study) -> Table:
    """The decode sizes to capture for this trace; for modes that compile or capture a size each."""
    rows = []
    for name, found in _covered(study):
        said = part(found, "advice")
        claim = part(study, "modes", name, "claim")
        if said and (claim.get("transform") != "none" or claim.get("replay") != "none"):
            times = [_decode_s(said.get(key)) for key in ("decode_s", "planned_decode_s")]
            saved = [words.seconds(said.get("startup_s_saved")), words.size(said.get("bytes_saved"))]
            option = said.get("vllm_option") if claim.get("replay") != "none" else None  # vLLM's sizes are of graphs
            rows.append([name, _sizes(said.get("capture_sizes")), *times, *saved, str(option or words.ABSENT)])
    columns = ["mode", "capture sizes", "decode steps", "with all planned", "start-up saved", "memory saved", "for vLLM"]
    note = (
        "The fewest decode sizes whose time for the trace's decode steps (steps x measured time of the size that holds them) is within 1 %"
        " of the least possible; exact. A size above the trace's largest batch is left out too: keep one where real bursts are larger."
        " Saved: first calls, and memory of the graphs, of the sizes left out."
    )
    return dropped_empty(Table("Sizes to capture", columns, rows, note, frozenset({"capture sizes", "for vLLM"})))


def graphs(study: Study) -> Table:
    """What each captured shape added to the device's memory, in order of capture."""
    rows = []
    for name in mode_names(study):
        for graph in part(study, "modes", name, "memory").get("graphs") or []:
            sizes = [words.size(dig(graph, key)) for key in ("pool_bytes", "outside_allocator_bytes")]
            rows.append([f"{name}, {dig(graph, 'shape')}", *sizes])
    note = (
        "In order of capture, the largest first: graphs share one pool, so a smaller one adds only what does not fit the blocks"
        " that it reuses. With Trees the warm-up call before the recording fills the same pool, and what it took is in no row."
        " Outside: what the driver holds, given out in steps of 2 MiB."
    )
    return Table("Memory of captured graphs", ["mode, shape", "graph pool", "outside the allocator"], rows, note)


def _covered(study: Study) -> list[tuple[str, Mapping[str, Any]]]:
    return [(name, found) for name in mode_names(study) if (found := part(study, "modes", name, "coverage"))]


def _sizes(sizes: Any) -> str:
    return " ".join(words.count(size) for size in sizes) if isinstance(sizes, list) else words.ABSENT


def _decode_s(value: Any) -> str:
    found = words.number(value)
    return words.ABSENT if found is None else words.microseconds(found * 1e6)


def _growth(found: Mapping[str, Any]) -> str:
    """The series that grow, in MiB a 1,000 steps, or `steady`."""
    series = part(found, "memory_growth")
    growing = [
        f"{name.removesuffix('_bytes').replace('_', ' ')} grows {words.size(dig(one, 'bytes_per_1000_steps'))} a 1,000 steps"
        for name, one in series.items()
        if dig(one, "verdict") == "grows"
    ]
    return "; ".join(growing) or ("steady" if series else words.ABSENT)


def _adapters(found: Mapping[str, Any]) -> str:
    use = part(found, "adapters")
    if not use:
        return words.ABSENT
    after = pairs(part(use, "paths_after_switch"), words.count)
    return f"{words.count(use.get('num_switches'))} switches among {words.count(use.get('num_adapters'))}; the step after: {after}"
