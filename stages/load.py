"""load: the worker alone under real arrivals: goodput, tails, queueing, energy.

A continuous-batching loop over the mode's own steps serves the trace's arrivals in real time, the same for every mode.
`request_goodput` = requests sent that met every limit / window; `slo_attainment` = their share of those sent; what is
in flight at the end is waited for up to the grace time, then counts as missed.
Reads config/<mode>.yaml (slo, arrival_rates), trace/. Writes load/<mode>.json.

    python -m stages.load --mode eager
"""

from __future__ import annotations

from functools import partial as bind
from typing import Any

from stages.core.composed import Settings
from stages.core.errors import UserError, run_command
from stages.core.partial import Partial
from stages.core.records.load import Load, LoadRecord, LoadRun, ServedAnswers
from stages.core.service_levels import ATTAINMENT, rate_key
from stages.traces.arrivals import RECORDED, arriving
from stages.workers.goodput_search import SEEDS, highest_met, search
from stages.workers.measurement import Study, mode_command, worker
from stages.workers.process import Worker, WorkerFailed
from stages.workers.served_runs import summary


def measure(study: Study, settings: Settings, partial: Partial) -> Load:
    """Every arrival rate, each in a fresh worker; then the search for the highest rate, where the measure asks for it."""
    runs = [partial.part(f"rate-{rate_key(rate)}", LoadRun, bind(_run, study, settings, rate)) for rate in settings.arrival_rates]
    met = [run for run in runs if run.slo_attainment >= ATTAINMENT]
    found = Load(
        slo=dict(vars(settings.slo)),
        runs=runs,
        max_goodput=max((run.request_goodput for run in met), default=None),
        max_goodput_is_lower_bound=bool(met) and max(met, key=_offered) is max(runs, key=_offered),
    )
    if not settings.measure.load.search_s:
        return found
    return partial.part("searched", Load, bind(_searched, study, settings, found))


def _offered(run: LoadRun) -> float:
    return run.arrival_rate_per_s


def _run(study: Study, settings: Settings, rate: Any) -> LoadRun:
    rate_per_s = study.plan.recorded_rate_per_s * (1.0 if rate == "recorded" else float(rate) / study.plan.recorded_rate_per_s)
    with worker(study, settings, "load") as started:
        started.ready()
        held = _max_sequences(settings, started)
        load = settings.measure.load
        return _served(study, settings, started, held, rate_per_s, settings.seed, load.duration_s, rate_key(rate), load.sampled_requests)


def _max_sequences(settings: Settings, started: Worker) -> int | None:
    """Sequences that `device_memory_bytes` holds in this mode, as `capture` computes them; None without a limit.

    Raises WorkerFailed where it holds none.
    """
    if settings.device_memory_bytes is None:
        return None
    found = started.ask("stages.workers.measuring_memory:measure_memory", device_memory_bytes=settings.device_memory_bytes)
    held = int(found["max_sequences"])
    if held < 1:
        raise WorkerFailed(f"device_memory_bytes ({settings.device_memory_bytes:,}) holds no sequence in this mode", [])
    return held


def _served(
    study: Study,
    settings: Settings,
    started: Worker,
    max_sequences: int | None,
    rate_per_s: float,
    seed: int,
    longest_s: float,
    key: str = "",
    num_sampled: int = 0,
) -> LoadRun:
    """One run at a rate. Recorded arrivals are compressed, others drawn at the recorded rate and compressed alike."""
    load, recorded = settings.measure.load, study.plan.recorded_rate_per_s
    factor = rate_per_s / recorded
    window_s = min(longest_s, study.plan.span_s / factor) if load.process == RECORDED else longest_s
    requests = arriving(study.requests, load.process, recorded, window_s * factor, seed, load.gamma_shape)
    if not any(request["arrival_s"] / factor <= window_s for request in requests):
        raise UserError("measure.load.duration_s", "must let at least one request arrive", longest_s, "Raise it or the rate.")
    times = {"rate_factor": factor, "duration_s": window_s, "grace_s": load.grace_s}
    served = started.ask("stages.workers.serving:serve", requests=requests, max_sequences=max_sequences, num_sampled=num_sampled, **times)
    run = summary(served, key or f"{rate_per_s:g}", rate_per_s, window_s, vars(settings.slo), load.process)
    return run.model_copy(update={"answers": _answers(settings, started, served["sampled"])}) if num_sampled else run


def _answers(settings: Settings, started: Worker, sampled: list[dict[str, Any]]) -> ServedAnswers:
    """What the sample got, against eager, once the run is over and its numbers are read."""
    names = {"precision": settings.precision, "baseline": settings.baseline, "sampled": sampled}
    return ServedAnswers(**started.ask("stages.workers.served_answers:compare", **names))


def _searched(study: Study, settings: Settings, found: Load) -> Load:
    """`max_goodput` by bisection, in one worker, from what the rates of params.yaml say already. Recorded arrivals have one seed."""
    met = [run.arrival_rate_per_s for run in found.runs if run.slo_attainment >= ATTAINMENT]
    missed = [run.arrival_rate_per_s for run in found.runs if run.slo_attainment < ATTAINMENT]
    low = max((rate for rate in met if rate < min(missed, default=float("inf"))), default=None)
    with worker(study, settings, "load") as started:
        started.ready()
        held = _max_sequences(settings, started)

        def run(rate_per_s: float, seed: int) -> tuple[float, float]:
            one = _served(study, settings, started, held, rate_per_s, settings.seed + seed, settings.measure.load.search_s)
            return one.request_goodput, one.slo_attainment

        seeds = SEEDS[:1] if settings.measure.load.process == RECORDED else SEEDS
        probes = search(run, low, min(missed, default=None), _offered(found.runs[0]), seeds)
    best = highest_met(probes)
    goodput = max([found.max_goodput or 0.0, *([best[1]] if best else [])])
    bounded = bool(missed) or any(not probe.met for probe in probes)
    return found.model_copy(update={"max_goodput": goodput or None, "max_goodput_is_lower_bound": not bounded, "search": probes})


def main() -> None:
    """Measure one mode."""
    mode_command("load", __doc__, LoadRecord, measure)


if __name__ == "__main__":
    run_command(main)
