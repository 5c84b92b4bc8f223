"""load: the worker alone under real arrivals: goodput, tails, queueing, energy.

A continuous-batching loop over the mode's own steps serves the trace's arrivals in real time, the same for every mode.
`request_goodput` = requests sent that met every limit / window; `slo_attainment` = their share of those sent; what is
in flight at the end is waited for up to the grace time, then counts as missed.
Reads config/<mode>.yaml (slo, arrival_rates), trace/. Writes load/<mode>.json.

    python -m stages.load --mode eager
"""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from functools import partial as bind
from typing import Any

from stages.core.composed import Settings
from stages.core.errors import run_command
from stages.core.partial import Partial
from stages.core.records.load import Load, LoadRecord, LoadRun
from stages.core.service_levels import ATTAINMENT, best_met, rate_key
from stages.traces.arrivals import RECORDED
from stages.workers.goodput_search import SEEDS, highest_met, search
from stages.workers.load_worker import LoadWorker, load_worker
from stages.workers.measurement import Study, mode_command


def measure(study: Study, settings: Settings, partial: Partial) -> Load:
    """Every arrival rate, then the search for the highest rate, where the measure asks for it; each in a fresh worker.

    With `one_worker` all of them share one.
    """
    load = settings.measure.load
    with ExitStack() as stack:
        shared = stack.enter_context(load_worker(study, settings)) if load.one_worker else None
        runs = [
            partial.part(f"rate-{rate_key(rate)}", LoadRun, bind(_run, study, settings, shared, rate)) for rate in settings.arrival_rates
        ]
        found = Load(slo=dict(vars(settings.slo)), runs=runs, **best_met(runs))
        if not load.search_s:
            return found
        return partial.part("searched", Load, bind(_searched, study, settings, shared, found))


def _run(study: Study, settings: Settings, shared: LoadWorker | None, rate: Any) -> LoadRun:
    load, sampled = settings.measure.load, not shared or rate == settings.arrival_rates[-1]  # comparing takes memory that stays
    rate_per_s = study.plan.recorded_rate_per_s * (1.0 if rate == "recorded" else float(rate) / study.plan.recorded_rate_per_s)
    with nullcontext(shared) if shared else load_worker(study, settings) as serving:
        return serving.serve(rate_per_s, settings.seed, load.duration_s, rate_key(rate), load.sampled_requests if sampled else 0)


def _searched(study: Study, settings: Settings, shared: LoadWorker | None, found: Load) -> Load:
    """`max_goodput` by bisection, in one worker, from what the rates of params.yaml say already. Recorded arrivals have one seed."""
    met = [run.arrival_rate_per_s for run in found.runs if run.slo_attainment >= ATTAINMENT]
    missed = [run.arrival_rate_per_s for run in found.runs if run.slo_attainment < ATTAINMENT]
    low = max((rate for rate in met if rate < min(missed, default=float("inf"))), default=None)
    with nullcontext(shared) if shared else load_worker(study, settings) as serving:

        def run(rate_per_s: float, seed: int) -> tuple[float, float]:
            one = serving.serve(rate_per_s, settings.seed + seed, settings.measure.load.search_s, f"{rate_per_s:g}")
            return one.request_goodput, one.slo_attainment

        seeds = SEEDS[:1] if settings.measure.load.process == RECORDED else SEEDS
        probes = search(run, low, min(missed, default=None), found.runs[0].arrival_rate_per_s, seeds)
    best = highest_met(probes)
    goodput = max([found.max_goodput or 0.0, *([best[1]] if best else [])])
    bounded = bool(missed) or any(not probe.met for probe in probes)
    return found.model_copy(update={"max_goodput": goodput or None, "max_goodput_is_lower_bound": not bounded, "search": probes})


def main() -> None:
    """Measure one mode."""
    mode_command("load", __doc__, LoadRecord, measure)


if __name__ == "__main__":
    run_command(main)
