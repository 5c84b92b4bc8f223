"""Figures of a run under load: arrival rates as keys, what meets the limits, the attainment that counts as met, and percentiles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stages.core.records.load import LoadRun, Percentiles, ServedRequest

ATTAINMENT = 0.99
MIN_SAMPLES_P90 = 20
MIN_SAMPLES_P99 = 459  # MLPerf LoadGen: p99 at 99 % confidence with no violation


def rate_key(rate: Any) -> str:
    """An arrival rate of params.yaml as the key that records use: `recorded`, or the number in 1/s."""
    return f"{float(rate):g}" if isinstance(rate, int | float) else str(rate)


def meets(request: ServedRequest, slo: dict[str, float]) -> bool:
    """Completed, first token in time, and every later token in time on average."""
    if not request.completed or request.ttft_ms is None:
        return False
    return request.ttft_ms <= slo["ttft_ms"] and (request.tpot_ms or 0.0) <= slo["tpot_ms"]


def percentiles(samples: Sequence[float]) -> Percentiles:
    """Percentiles in the unit of the samples; all None without samples."""
    if not samples:
        return Percentiles(n=0, p50=None, p90=None, p99=None, mean=None)
    p90, p99 = tails(samples)
    return Percentiles(n=len(samples), p50=float(np.median(samples)), p90=p90, p99=p99, mean=float(np.mean(samples)))


def tails(samples: Sequence[float]) -> tuple[float | None, float | None]:
    """p90 and p99 in the unit of the samples; None where there are too few samples for them."""
    p90 = float(np.quantile(samples, 0.9)) if len(samples) >= MIN_SAMPLES_P90 else None
    p99 = float(np.quantile(samples, 0.99)) if len(samples) >= MIN_SAMPLES_P99 else None
    return p90, p99


def best_met(runs: Sequence[LoadRun]) -> dict[str, Any]:
    """`max_goodput` of these runs, and whether it is a lower bound: the fastest one met the limits, so the maximum is higher."""
    met = [run for run in runs if run.slo_attainment >= ATTAINMENT]
    return {
        "max_goodput": max((run.request_goodput for run in met), default=None),
        "max_goodput_is_lower_bound": max(runs, key=lambda run: run.arrival_rate_per_s, default=None) in met,
    }
