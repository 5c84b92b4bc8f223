"""Start, load and memory of a worker."""

from __future__ import annotations

from stages.analysis.lifetimes import CACHES
from stages.views import words
from stages.views.document import Study, baseline, dig, mode_names, part, rates, why_not
from stages.views.figures.ladder import GROUPS, grouped
from stages.views.figures.memory import PARTS, breakdown
from stages.views.tables.table import Table, dropped_empty


def startup(study: Study) -> Table:
    """Phases of each start."""
    rows = []
    for name in mode_names(study):
        for state in CACHES:
            phases = grouped(study, name, state)
            if phases:
                start = part(study, "modes", name, "startup", state)
                ends = [words.seconds(start.get("ready_s")), words.seconds(start.get("first_request_s"))]
                rows.append([f"{name}, {state}", *ends, _proof(start), *(words.seconds(value) for value in phases.values())])
    columns = ["mode, caches", "ready", "first request", "cache state proved", *GROUPS]
    return dropped_empty(Table("Startup phases", columns, rows, texts=frozenset({"cache state proved"})))


def _proof(start: object) -> str:
    proved = dig(start, "proved")
    return words.ABSENT if proved is None else "yes" if proved else "no"


def unproved(study: Study) -> list[str]:
    """A sentence a start that was not in the cache state that it claims: by what, and why where that is known."""
    starts = [(f"{name}, {state}", dig(study, "modes", name, "startup", state)) for name in mode_names(study) for state in CACHES]
    return [
        words.clean("; ".join([f"{where}: {dig(start, 'proof')}", *filter(None, [str(dig(start, "cause") or "")])]))
        for where, start in starts
        if dig(start, "proved") is False
    ]


def load(study: Study) -> Table:
    """Every rate of every mode that may be ranked."""
    rows = []
    for name in mode_names(study):
        for rate in rates(study):
            run = part(study, "modes", name, "load", rate)
            if run and not why_not(study, name):
                rows.append([f"{name}, {words.rate(rate)}", *_run(run)])
    columns = [
        "mode, arrivals",
        "goodput, 1/s",
        "within SLO",
        "TTFT p50, ms",
        "TTFT p99, ms",
        "TPOT p50, ms",
        "TPOT p99, ms",
        "failed",
        "compiled meanwhile",
        "requests hit",
        "steps by the baseline path",
        "TTFT p99 without them, ms",
        "TPOT p99 without them, ms",
    ]
    note = (
        "Real arrivals to a ready worker: start-up is not included here; it is in completions and break-even."
        " Requests hit: served while something compiled or was captured, or garbage was collected."
    )
    return dropped_empty(Table("Under load", columns, rows, note))


def _run(run: object) -> list[str]:
    tails = [words.plain(dig(run, what, which)) for what in ("ttft_ms", "tpot_ms") for which in ("p50", "p99")]
    ends = [words.count(dig(run, "num_failed")), words.count(dig(run, "num_compiles_during")), words.count(dig(run, "num_hit"))]
    ends += [words.percent(_given_up(run))]
    ends += [words.plain(dig(run, f"{what}_without_hit", "p99")) for what in ("ttft_ms", "tpot_ms")]
    return [words.plain(dig(run, "request_goodput")), words.percent(dig(run, "slo_attainment")), *tails, *ends]


def _given_up(run: object) -> float | None:
    """Share of the loop's steps whose shape the mode does not support."""
    given, *steps = (words.number(dig(run, key)) for key in ("num_baseline_steps", "num_decode_steps", "num_prefill_steps"))
    whole = sum(step or 0 for step in steps)
    return None if given is None or not whole else given / whole


def memory(study: Study) -> Table:
    """Bytes by use, and the sequences that still fit."""
    rows = []
    for name in mode_names(study):
        found = breakdown(study, name)
        if found:
            whole = part(study, "modes", name, "memory")
            sequences = words.number(whole.get("max_sequences"))
            cells = [words.size(whole.get("peak_bytes")), *(words.size(value) for value in found.values())]
            fitting = [words.count(sequences), words.count(whole.get("checked_sequences")), words.count(sequences_lost(study, name))]
            rows.append([name, *cells, *fitting])
    columns = ["mode", "peak", *PARTS, "sequences that fit", "allocated", "sequences lost"]
    return dropped_empty(Table("Bytes by use", columns, rows, _slots(study)))


def _slots(study: Study) -> str:
    """Why a worker's bytes may exceed the study's limit; empty without one."""
    if dig(study, "choices", "device_memory_bytes") is None:
        return ""
    return (
        f"The bytes are those of a worker with the plan's {dig(study, 'trace', 'max_batch')} slots, whatever device_memory_bytes allows;"
        " what fits follows from them, and that many were allocated under the limit. Under load the mode has as many and no more."
    )


def sequences_lost(study: Study, name: str) -> float | None:
    """Concurrent sequences that fit with the baseline but not with this mode."""
    ours = words.number(dig(study, "modes", name, "memory", "max_sequences"))
    theirs = words.number(dig(study, "modes", baseline(study), "memory", "max_sequences"))
    return None if ours is None or theirs is None else theirs - ours
