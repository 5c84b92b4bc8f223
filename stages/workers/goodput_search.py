"""The highest rate whose requests meet the limits, by bisection on one worker."""

from __future__ import annotations

from collections.abc import Callable

from stages.core.records.load import Probe
from stages.core.service_levels import ATTAINMENT

SEEDS = (1, 2)
PRECISION = 1.05
MAX_DOUBLINGS = 6
MAX_RATES = 16

Run = Callable[[float, int], tuple[float, float]]
"""(rate in 1/s, seed) -> goodput in 1/s, attainment."""


def search(run: Run, met: float | None, missed: float | None, start: float, seeds: tuple[int, ...] = SEEDS) -> list[Probe]:
    """Probes until the highest rate met and the lowest missed are within 5 %; a rate is met when every seed meets it.

    `met`, `missed`: what is known already (None: nothing). Without a bound the rate is doubled or halved, at most 6 times.
    """
    probes: list[Probe] = []
    low, high, next_rate = met, missed, start
    for _ in range(MAX_RATES):
        if low and high:
            if high <= PRECISION * low:
                break
            next_rate = (low * high) ** 0.5
        elif low or high:
            if _exhausted(probes):
                break
            next_rate = 2 * low if low else (high or start) / 2
        found = _probed(run, next_rate, seeds)
        probes += found
        if all(probe.met for probe in found):
            low = next_rate
        else:
            high = next_rate
    return probes


def _exhausted(probes: list[Probe]) -> bool:
    return len({probe.arrival_rate_per_s for probe in probes}) >= MAX_DOUBLINGS


def _probed(run: Run, rate: float, seeds: tuple[int, ...]) -> list[Probe]:
    """One run a seed; the first that misses settles it."""
    found: list[Probe] = []
    for seed in seeds:
        goodput, attainment = run(rate, seed)
        probe = Probe(arrival_rate_per_s=rate, seed=seed, request_goodput=goodput, slo_attainment=attainment, met=attainment >= ATTAINMENT)
        found.append(probe)
        if not probe.met:
            break
    return found


def highest_met(probes: list[Probe]) -> tuple[float, float] | None:
    """(rate, mean goodput over the seeds) of the highest rate that every seed met; None when none was."""
    rates = {probe.arrival_rate_per_s for probe in probes} - {probe.arrival_rate_per_s for probe in probes if not probe.met}
    if not rates:
        return None
    best = max(rates)
    goodputs = [probe.request_goodput for probe in probes if probe.arrival_rate_per_s == best]
    return best, sum(goodputs) / len(goodputs)
