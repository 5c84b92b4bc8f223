"""What a reader must know before the verdict is used elsewhere: what it was tested under, and what weakens it."""

from __future__ import annotations

from collections import defaultdict

from stages.analysis import services
from stages.analysis.reading import StudyRecords
from stages.analysis.wording import at_rate, seconds
from stages.core.records.load import LoadRun

UNEVEN = 1.5
"""Arrivals in one third of the time against another."""


def caveats(records: StudyRecords) -> list[str]:
    """Under which model, release, shapes, device, load and lifetimes the verdict was tested, and what weakens it."""
    environment, plan, params = records.environment, records.plan, records.params
    device = environment.get("gpu") or environment.get("cpu") or "unknown device"
    found = [
        f"tested with model {params.model} in {params.precision} on {device} with torch {environment.get('torch', 'unknown')}, "
        f"decode batches {_listed(plan.capture_sizes)}, prompts padded to {_listed(plan.prompt_sizes)} tokens",
        _load(records),
        *_paces(records),
        *_memory_limit(records),
        *_devices(records),
        *_places(records),
    ]
    if any(record.data and record.data.num_sets == 1 for record in records.steady_state.values()):
        found.append("one set of processes: no intervals, step-time differences under 5 % stay undecided")
    bounded = [mode for mode in records.modes if (data := records.load[mode].data) and data.max_goodput_is_lower_bound]
    if bounded:
        found.append(f"the highest rate tried still met the limits with {', '.join(bounded)}: saturation lies higher")
    missed = [mode for mode in records.modes if (data := records.load[mode].data) and data.max_goodput is None]
    if missed:
        found.append(f"no rate tried met the limits for 99 % of requests with {', '.join(missed)}: nothing counts at saturation")
    single = [mode for mode in records.modes if (starts := records.warmup[mode].data) and len(services.starts(starts, "cold")) == 1]
    if single:
        found.append(f"one cold start each of {', '.join(single)}: break-even has no interval")
    return found


def _load(records: StudyRecords) -> str:
    """The arrivals, limits and lifetimes of the load; without a run under load the trace alone."""
    plan, params = records.plan, records.params
    trace = f"trace {plan.trace} ({plan.num_requests} requests, lengths x {plan.length_factor:.3g})"
    if not any(record.data for record in records.load.values()):
        return f"{trace}: nothing ran under load"
    rates = ", ".join(at_rate(services.rate_key(rate)) for rate in params.arrival_rates)
    lifetimes = ", ".join(seconds(value) for value in params.lifetimes_s)
    limits = f"limits TTFT {params.slo.ttft_ms:g} ms and TPOT {params.slo.tpot_ms:g} ms"
    return f"tested under {trace} {rates}{_served(records)}, {limits}, lifetimes {lifetimes} from cold caches"


def _served(records: StudyRecords) -> str:
    """How long each rate was served, and how many requests that were: lifetimes are extrapolated from them."""
    runs = _runs(records)
    lengths = " or ".join(sorted({f"{run.window_s:g} s" for run in runs}))
    each = "each " if len(runs) > 1 else ""
    return f" ({each}served for {lengths}: {', '.join(f'{run.num_sent:,}' for run in runs)} requests)" if runs else ""


def _paces(records: StudyRecords) -> list[str]:
    """Arrivals that came much faster at one end of their window than at the other."""
    found = []
    for run in _runs(records):
        first, last = (
            sum(begin <= request.arrival_s / run.window_s < end for request in run.requests) for begin, end in ((0, 1 / 3), (2 / 3, 1))
        )
        if max(first, last) > UNEVEN * max(1, min(first, last)):
            ends = [f"{count * 3 / run.window_s:.3g}" for count in (first, last)]
            found.append(f"{at_rate(run.rate)} {ends[0]} and {ends[1]}")
    return (
        [f"arrivals were no steady rate; requests/s in the first and in the last third of their time: {'; '.join(found)}"] if found else []
    )


def _runs(records: StudyRecords) -> list[LoadRun]:
    """The runs of the first mode that has any; arrivals are the same for every mode."""
    return next((record.data.runs for record in records.load.values() if record.data), [])


def _memory_limit(records: StudyRecords) -> list[str]:
    """How many sequences `device_memory_bytes` holds, the most first; none where a study has all of the device."""
    limit = records.params.device_memory_bytes
    if limit is None:
        return []
    fitting: dict[int, list[str]] = defaultdict(list)
    for mode in records.modes:
        if data := records.capture[mode].data:
            fitting[data.memory.max_sequences].append(mode)
    held = "; ".join(f"{number:,} sequences fit with {', '.join(modes)}" for number, modes in sorted(fitting.items(), reverse=True))
    return [f"tested within {limit:,} bytes of device memory{': ' if held else ''}{held}"]


def _devices(records: StudyRecords) -> list[str]:
    """Which stages ran on which GPU, where there is more than one."""
    stages: dict[str, set[str]] = defaultdict(set)
    for record in records.all():
        if record.host.gpu_uuid:
            stages[record.host.gpu_uuid].add(record.stage)
    if len(stages) < 2:
        return []
    told = "; ".join(f"{uuid}: {', '.join(sorted(names))}" for uuid, names in sorted(stages.items()))
    return [f"measured on {len(stages)} GPUs of one kind: {told}"]


def _places(records: StudyRecords) -> list[str]:
    """Whether factorials were timed on different GPUs: a mode of one is then compared with a mode of another across them."""
    timed = {name: record.host.gpu_uuid or record.host.hostname for name, record in records.steady_state.items() if record.data}
    if len(set(timed.values())) < 2:
        return []
    on = {place: [name for name in timed if timed[name] == place] for place in timed.values()}
    listed = "; ".join(f"{', '.join(names)} on {place}" for place, names in on.items())
    return [f"timed on different machines, each factorial on one: {listed}; speed-ups of different factorials are compared across them"]


def _listed(sizes: list[int]) -> str:
    return ", ".join(map(str, sizes))
