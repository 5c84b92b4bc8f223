"""Load in detail: requests, the queue, the search for the highest rate, what a useful request cost, who was hit, memory along the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stages.analysis.services import MOST_LATE
from stages.views import words
from stages.views.document import Study, dig, mode_names, part, rates, sort_numeric, why_not
from stages.views.tables.table import Table, dropped_empty

SECONDS_PER_HOUR = 3600
_HIT = {"compile": "a compilation", "recording": "a recording", "garbage_collection": "a garbage collection"}
NOTABLE_MS = 10.0
LEAST_SHARE_AT_LIMIT = 0.1


def _runs(study: Study) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(`mode, rate`, mode, run) of every run of a mode that may be ranked."""
    for name in mode_names(study):
        for rate in rates(study) if not why_not(study, name) else []:
            if run := part(study, "modes", name, "load", rate):
                yield f"{name}, {words.rate(rate)}", name, run


def requests(study: Study) -> Table:
    """What was sent and how it arrived, the start of the run and what was served after it, and the requests' whole time."""
    columns = [
        "mode, arrivals",
        "pattern",
        "sent",
        "completed",
        "never begun",
        "ramp-up",
        "goodput after it, 1/s",
        "within SLO after it",
        *(f"{what} {which}, ms" for what in ("whole request", "in the queue") for which in ("p50", "p99")),
    ]
    note = (
        "Arrivals are the same for every mode: the trace's own pattern (recorded) or drawn with a seed (poisson, gamma)."
        " The loop takes a waiting request's prefill first, else one decode step over all active sequences."
        " Ramp-up: the mean time of a completed request, at most half of the window; by then requests leave as they come,"
        " so goodput may be above the rate sent. A dash: too few requests for that percentile."
    )
    rows = [[where, *_requests(run)] for where, _, run in _runs(study)]
    return dropped_empty(Table("Requests", columns, rows, note, frozenset({"pattern"})))


def _requests(run: Mapping[str, Any]) -> list[str]:
    steady = part(run, "steady")
    counts = [words.count(run.get(f"num_{what}")) for what in ("sent", "completed", "never_begun")]
    after = [words.seconds(steady.get("begin_s")), words.plain(steady.get("request_goodput")), words.percent(steady.get("slo_attainment"))]
    times = [words.plain(dig(run, what, which)) for what in ("e2el_ms", "queue_ms") for which in ("p50", "p99")]
    return [str(run.get("process") or ""), *counts, *after, *times]


def queues(study: Study) -> Table:
    """How much of a request is waiting, and at which load a faster step would matter."""
    rows = [[where, words.percent(run.get("queueing_share")), str(run.get("queueing") or "")] for where, _, run in _runs(study)]
    columns = ["mode, arrivals", "share of time in the queue", "what it means"]
    return dropped_empty(Table("Queueing", columns, rows if any(row[2] for row in rows) else [], texts=frozenset({"what it means"})))


def search(study: Study) -> Table:
    """Every rate that the search for the highest one tried."""
    rows = []
    for name in mode_names(study):
        probes = dig(study, "modes", name, "load", "search") or []
        for probe in sorted(probes, key=lambda one: (one["arrival_rate_per_s"], one["seed"])) if not why_not(study, name) else []:
            cells = [words.plain(probe["request_goodput"]), words.percent(probe["slo_attainment"]), "yes" if probe["met"] else "no"]
            rows.append([f"{name}, {words.plain(probe['arrival_rate_per_s'])} requests/s", words.count(probe["seed"]), *cells])
    columns = ["mode, arrivals", "seed", "goodput, 1/s", "within SLO", "met"]
    return Table(
        "Search for the highest rate", columns, rows, "A rate is met when 99 % of the requests of every seed stay within the limits."
    )


def costs(study: Study) -> Table:
    """Energy a useful request, gaps between tokens, and what the loop itself takes of a decode step."""
    found = [[where, *_cost(run)] for where, _, run in _runs(study)]
    rows = [row for row in found if any(cell != words.ABSENT for cell in row[1:])]
    columns = [
        "mode, arrivals",
        "energy a useful request, J",
        "between tokens p50, ms",
        "p99, ms",
        "in flight: most",
        "limit",
        "decode steps at it",
        "loop a decode step: scheduling",
        "sampling",
        "bookkeeping",
        "at the largest batch",
        "arrivals noticed late",
    ]
    note = (
        "Energy: NVML's counter over the run, per request that met every limit. The loop's own time: without the mode's call and without"
        " waiting for the device. Noticed late: sum of the lateness over the sum of the requests' times, the client's own trustworthiness."
    )
    return dropped_empty(Table("What a request costs", columns, rows, note))


def _cost(run: Mapping[str, Any]) -> list[str]:
    work = part(run, "host_work")
    batches = part(work, "by_batch")
    largest = sort_numeric(batches)[-1:]
    at_largest = f"{words.microseconds(batches[largest[0]])} at {largest[0]}" if largest else words.ABSENT
    gaps = [words.plain(dig(run, "itl_ms", which)) for which in ("p50", "p99")]
    loop = [words.microseconds(work.get(f"{key}_us")) for key in ("scheduling", "sampling", "bookkeeping")]
    energy, late = words.plain(run.get("energy_per_good_j")), words.percent(run.get("lateness_share"))
    return [energy, *gaps, *_in_flight(run), *loop, at_largest, late]


def _in_flight(run: Mapping[str, Any]) -> list[str]:
    """The most sequences in one decode step, how many were let in, and the share of the decode steps that had as many."""
    batches = part(run, "batch_histogram")
    most = max(map(int, batches), default=None)
    return [words.count(most), words.count(run.get("max_active")), words.percent(share_at_limit(run))]


def share_at_limit(run: Mapping[str, Any]) -> float | None:
    """Share of the decode steps whose batch was all that may be in flight; None without a step."""
    batches = part(run, "batch_histogram")
    return batches.get(str(run.get("max_active")), 0) / sum(batches.values()) if batches else None


def cache_binds(study: Study) -> list[str]:
    """A sentence a run that had, for a good part of its steps, as many sequences in flight as `device_memory_bytes` holds."""
    if dig(study, "choices", "device_memory_bytes") is None:
        return []
    found = [(where, run.get("max_active"), share_at_limit(run) or 0.0) for where, _, run in _runs(study)]
    largest = dig(study, "trace", "max_batch")
    return [
        f"{words.clean(where)}: the KV cache binds: {share:.0%} of the decode steps had all {limit} sequences in flight that"
        " device_memory_bytes holds; what arrives then waits for a slot, and a faster step frees one sooner."
        for where, limit, share in found
        if share >= LEAST_SHARE_AT_LIMIT and limit != largest
    ]


def self_check(study: Study) -> list[str]:
    """A sentence a run whose arrivals were noticed so late that it shows in the tails."""
    late = [(where, words.number(run.get("lateness_share")) or 0.0) for where, _, run in _runs(study)]
    return [
        f"{words.clean(where)}: arrivals were noticed late by {share:.1%} of the requests' time, above {MOST_LATE:.0%}:"
        " the loop takes them between steps, and its tails hold that delay."
        for where, share in late
        if share > MOST_LATE
    ]


def collections(study: Study) -> list[str]:
    """A sentence a run that Python's garbage collector held up, with the remedy."""
    held_up = [(where, part(run, "gc")) for where, _, run in _runs(study)]
    return [
        f"{words.clean(where)}: Python's garbage collector held the loop up for {words.plain(found['longest_ms'])} ms at once"
        f" ({words.plain(found['total_ms'])} ms in all, {words.count(found['num_full'])} full collections)."
        " gc.freeze() once the worker is ready keeps it off what was built until then;"
        " the override +measure.load.freeze_gc=true measures with it."
        for where, found in held_up
        if (words.number(found.get("longest_ms")) or 0.0) >= NOTABLE_MS
    ]


def hits(study: Study) -> Table:
    """The requests that a compilation, a recording or a garbage collection hit."""
    rows = []
    for where, _, run in _runs(study):
        for request in run.get("hit_requests") or []:
            times = [words.plain(request.get(key)) for key in ("ttft_ms", "tpot_ms")]
            rows.append([f"{where}, request {words.count(request.get('request_id'))}", _HIT.get(str(request.get("hit_by")), "–"), *times])
    note = "At most 20 a run; their number, and the tails with and without them, are in the table above."
    return Table("Requests hit", ["mode, arrivals, request", "hit by", "TTFT, ms", "TPOT, ms"], rows, note, frozenset({"hit by"}))


def memory_along(study: Study) -> Table:
    """Memory at the start and the end of each run, its slope, and whether it grows."""
    rows = [[where, *_growth(part(run, "memory"))] for where, _, run in _runs(study) if part(run, "memory").get("samples")]
    note = (
        "torch's allocator, or the resident set on a CPU. Grows: a trend at 99 % (Kendall) that makes at least 1 % and 16 MiB of the run."
    )
    columns = ["mode, arrivals", "at the start", "at the end", "slope an hour", "verdict"]
    return Table("Memory along the load", columns, rows, note, frozenset({"verdict"}))


def _growth(found: Mapping[str, Any]) -> list[str]:
    samples = found["samples"]
    slope = words.number(found.get("bytes_per_s")) or 0.0
    return [words.size(samples[0][1]), words.size(samples[-1][1]), words.size(slope * SECONDS_PER_HOUR), str(found.get("verdict"))]
