"""Numbers that describe a trace and the plan made from it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from stages.core.records.plan import Request, StepRun


def describe(raw: Sequence[Request], scaled: Sequence[Request], runs: Sequence[StepRun]) -> dict[str, float]:
    """Lengths before (`raw_`) and after scaling (`scaled_`), arrivals, and what padding costs the planned steps."""
    return {
        **_lengths("raw", raw),
        **_lengths("scaled", scaled),
        "inter_arrival_cv": _inter_arrival_cv(raw),
        "mean_decode_batch": _mean_size(runs, "decode"),
        "decode_padding_waste": _padding_waste(runs, "decode"),
        "prefill_padding_waste": _padding_waste(runs, "prefill"),
    }


def _lengths(prefix: str, requests: Sequence[Request]) -> dict[str, float]:
    found: dict[str, float] = {}
    for quantity in ("prompt_tokens", "output_tokens"):
        values = [getattr(request, quantity) for request in requests]
        quantiles = numpy.quantile(values, [0.5, 0.95, 0.99, 1.0])
        found |= {f"{prefix}_{quantity}_{name}": float(q) for name, q in zip(("p50", "p95", "p99", "max"), quantiles, strict=True)}
        found[f"{prefix}_{quantity}_sum"] = float(sum(values))
    return found


def _inter_arrival_cv(requests: Sequence[Request]) -> float:
    """Standard deviation / mean of the gaps between arrivals; 1 for a Poisson process."""
    gaps_s = numpy.diff([request.arrival_s for request in requests])
    return float(gaps_s.std() / gaps_s.mean())


def _mean_size(runs: Sequence[StepRun], phase: str) -> float:
    steps = sum(run.count for run in runs if run.phase == phase)
    return sum(run.size * run.count for run in runs if run.phase == phase) / steps if steps else 0.0


def _padding_waste(runs: Sequence[StepRun], phase: str) -> float:
    """Share of the computed rows or tokens that is padding: 1 - real / padded; 0 where the phase has no step."""
    real = sum(run.size * run.count for run in runs if run.phase == phase)
    computed = sum(run.padded_size * run.count for run in runs if run.phase == phase)
    return 1 - real / computed if computed else 0.0
