"""load: the worker alone under real arrivals: goodput, tails, queueing, energy.

A continuous-batching loop over the mode's own steps serves the trace's arrivals in real time, the same for every mode.
`request_goodput` = requests sent that met every limit / window; `slo_attainment` = their share of those sent; what is
in flight at the end is waited for up to the grace time, then counts as missed.
Reads config/<mode>.yaml (slo, arrival_rates), trace/. Writes load/<mode>.json.

    python -m stages.load --mode eager
"""

from __future__ import annotations

import argparse
from functools import partial as bind
from typing import Any

from stages.core import paths
from stages.core.composed import Settings
from stages.core.errors import UserError, run_command
from stages.core.partial import Partial
from stages.core.records.load import Load, LoadRecord, LoadRun, Percentiles, ServedRequest
from stages.core.service_levels import ATTAINMENT, percentiles, rate_key
from stages.workers.measurement import Study, measure_mode, require_item, worker


def measure(study: Study, settings: Settings, partial: Partial) -> Load:
    """Every arrival rate, each in a fresh worker."""
    runs = [partial.part(f"rate-{rate_key(rate)}", LoadRun, bind(_run, study, settings, rate)) for rate in settings.arrival_rates]
    met = [run for run in runs if run.slo_attainment >= ATTAINMENT]
    return Load(
        slo=dict(vars(settings.slo)),
        runs=runs,
        max_goodput=max((run.request_goodput for run in met), default=None),
        max_goodput_is_lower_bound=bool(met) and max(met, key=_offered) is max(runs, key=_offered),
    )


def _offered(run: LoadRun) -> float:
    return run.arrival_rate_per_s


def _run(study: Study, settings: Settings, rate: Any) -> LoadRun:
    recorded = study.plan.recorded_rate_per_s
    factor = 1.0 if rate == "recorded" else float(rate) / recorded
    load = settings.measure.load
    window_s = min(load.duration_s, study.plan.span_s / factor)
    if not any(request["arrival_s"] / factor <= window_s for request in study.requests):
        raise UserError("measure.load.duration_s", "must let at least one request arrive", load.duration_s, "Raise it or the rate.")
    with worker(study, settings, "load") as started:
        started.ready()
        served = started.ask(
            "stages.workers.serving:serve", requests=study.requests, rate_factor=factor, duration_s=window_s, grace_s=load.grace_s
        )
    return summary(served, rate_key(rate), recorded * factor, window_s, vars(settings.slo))


def summary(served: dict[str, Any], rate: str, rate_per_s: float, window_s: float, slo: dict[str, float]) -> LoadRun:
    """A run's numbers from its requests; a request without a second token has no TPOT to miss."""
    requests = [ServedRequest(**request) for request in served["requests"]]
    good = [request for request in requests if meets(request, slo)]
    completed = [request for request in requests if request.completed]
    return LoadRun(
        rate=rate,
        arrival_rate_per_s=rate_per_s,
        window_s=window_s,
        num_sent=len(requests),
        num_completed=len(completed),
        num_failed=len(requests) - len(completed),
        request_goodput=len(good) / window_s,
        slo_attainment=len(good) / len(requests),
        ttft_ms=_percentiles(requests, "ttft_ms"),
        tpot_ms=_percentiles([request for request in completed if request.output_tokens > 1], "tpot_ms"),
        e2el_ms=_percentiles(completed, "e2el_ms"),
        queue_ms=_percentiles(requests, "queue_ms"),
        queueing_share=_queueing_share(completed),
        dispatch_lateness_ms=percentiles(served["lateness_ms"]),
        num_decode_steps=served["num_decode_steps"],
        num_prefill_steps=served["num_prefill_steps"],
        batch_histogram=served["batch_histogram"],
        host_us_per_decode_step=served["host_us_per_decode_step"],
        num_compiles_during=served["num_compiles_during"],
        energy_j=served["energy_j"],
        peak_bytes=served["peak_bytes"],
        requests=requests,
    )


def meets(request: ServedRequest, slo: dict[str, float]) -> bool:
    """Completed, first token in time, and every later token in time on average."""
    if not request.completed or request.ttft_ms is None:
        return False
    return request.ttft_ms <= slo["ttft_ms"] and (request.tpot_ms or 0.0) <= slo["tpot_ms"]


def _percentiles(requests: list[ServedRequest], quantity: str) -> Percentiles:
    return percentiles([value for value in (getattr(request, quantity) for request in requests) if value is not None])


def _queueing_share(completed: list[ServedRequest]) -> float:
    total = sum(request.e2el_ms or 0.0 for request in completed)
    return sum(request.queue_ms or 0.0 for request in completed) / total if total else 0.0


def main() -> None:
    """Measure one mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", required=True)
    mode = require_item(parser.parse_args().mode, "mode", paths.latest() / "config")
    measure_mode("load", mode, LoadRecord, measure)


if __name__ == "__main__":
    run_command(main)
