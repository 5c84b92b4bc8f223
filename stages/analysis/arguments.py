"""What speaks for the verdict, what limits it, and what would change it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import pairwise

from stages.analysis import services, speedups
from stages.analysis.reading import StudyRecords
from stages.analysis.wording import Table, at_rate, seconds
from stages.core.records.answer import Bottleneck, Contrasts, FactorialAnswer, ModeAnswer


def reasons(
    records: StudyRecords, answers: Mapping[str, ModeAnswer], joined: Mapping[str, FactorialAnswer], headline: str, shorter: str
) -> list[str]:
    """Why: the baseline's bottleneck, what kernels and replay save, the recommended mode's speed-up, also over that of shorter lives."""
    entry = dominant_bottleneck(records, answers[records.baseline])
    found = [f"{records.baseline}: {entry.sentence}"] if entry else []
    sequence = answers[headline].sequence if headline in answers else None
    versus = sequence.vs_baseline if sequence else None
    saved = {name: _saved(name, factorial.points["sequence"]) for name, factorial in joined.items() if "sequence" in factorial.points}
    found += saved.get(versus.factorial, []) if versus else next((lines for lines in saved.values() if lines), [])
    if versus:
        beside = f"{versus.verdict}, {versus.factorial}"
        found.append(f"{headline} runs the step sequence {versus.speedup:.2f} times as fast as {records.baseline} ({beside})")
    pair = speedups.over(records, headline, shorter) if shorter not in ("", records.baseline) else None
    if pair:
        around = f" [{pair.low:.2f}, {pair.high:.2f}]" if pair.low is not None and pair.high is not None else ""
        found.append(f"and {pair.speedup:.2f}{around} times as fast as {shorter} ({pair.verdict}, {pair.factorial})")
    return found


def dominant_bottleneck(records: StudyRecords, found: ModeAnswer) -> Bottleneck | None:
    """The bottleneck of the shape that takes the most time in the plan: steps times wall time."""
    counts: Counter[str] = Counter()
    for run in records.plan.runs:
        counts[f"{run.phase}/{run.padded_size}"] += run.count
    shapes = [shape for shape in found.bottleneck if counts[shape]]
    return found.bottleneck[max(shapes, key=lambda shape: counts[shape] * found.bottleneck[shape].wall_us)] if shapes else None


def _saved(name: str, point: Contrasts) -> list[str]:
    if not (point.total and point.compiled_alone and point.replay_alone and point.interaction):
        return []
    compiled, replay, interaction, total = (
        entry.value / 1e3 for entry in (point.compiled_alone, point.replay_alone, point.interaction, point.total)
    )
    return [
        f"{name}, over the step sequence: compiling alone saves {compiled:,.0f} ms, replay alone {replay:,.0f} ms, "
        f"both {total:,.0f} ms; {interaction:,.0f} ms would be counted twice"
    ]


def caveats(records: StudyRecords) -> list[str]:
    """Under which model, release, shapes, device, load and lifetimes the verdict was tested, and what weakens it."""
    environment, plan, params = records.environment, records.plan, records.params
    device = environment.get("gpu") or environment.get("cpu") or "unknown device"
    found = [
        f"tested with model {params.model} in {params.precision} on {device} with torch {environment.get('torch', 'unknown')}, "
        f"decode batches {_listed(plan.capture_sizes)}, prompts padded to {_listed(plan.prompt_sizes)} tokens",
        _load(records),
        *_memory_limit(records),
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


def _listed(sizes: list[int]) -> str:
    return ", ".join(map(str, sizes))


def would_flip(rejected: Mapping[str, str], cold: Table, warm: Table) -> list[str]:
    """Changes of lifetime, rate, cache state or evidence that would change the recommendation."""
    found = _switches(cold)
    for lifetime, choices in cold.items():
        for rate, choice in choices.items():
            other = warm.get(lifetime, {}).get(rate)
            if other and other.mode != choice.mode:
                found.append(f"warm caches {at_rate(rate)} for {seconds(float(lifetime))}: {other.mode} instead of {choice.mode}")
    claims = ("refuted", "not_proven", "wrong", "not_checked")
    found += [f"{mode} would be considered once this is fixed: {reason}" for mode, reason in rejected.items() if reason.startswith(claims)]
    return found


def _switches(table: Table) -> list[str]:
    lifetimes = sorted(table, key=float)
    found = []
    for shorter, longer in pairwise(lifetimes):
        for rate, choice in table[longer].items():
            before = table[shorter].get(rate)
            if before and before.mode != choice.mode:
                found.append(
                    f"a lifetime of {seconds(float(shorter))} instead of {seconds(float(longer))} {at_rate(rate)}: "
                    f"{before.mode} instead of {choice.mode}"
                )
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
    return f"tested under {trace} {rates}, {limits}, lifetimes {lifetimes} from cold caches"


def _places(records: StudyRecords) -> list[str]:
    """Whether factorials were timed on different GPUs: a mode of one is then compared with a mode of another across them."""
    timed = {name: record.host.gpu_uuid or record.host.hostname for name, record in records.steady_state.items() if record.data}
    if len(set(timed.values())) < 2:
        return []
    on = {place: [name for name in timed if timed[name] == place] for place in timed.values()}
    listed = "; ".join(f"{', '.join(names)} on {place}" for place, names in on.items())
    return [f"timed on different machines, each factorial on one: {listed}; speed-ups of different factorials are compared across them"]
