"""From startup and load records to what a mode delivers: ready times, goodput and capacity with their uncertainty."""

from __future__ import annotations

from statistics import median

from stages.analysis import statistics
from stages.analysis.lifetimes import CACHES, EQUAL_SHARE, Corners, Service, break_even
from stages.core.records.lifetime import BreakEven
from stages.core.records.load import Load, LoadRun, Probe
from stages.core.records.startup import Startup
from stages.core.service_levels import ATTAINMENT
from stages.core.service_levels import rate_key as rate_key
from stages.core.settings import Params

SATURATION = "saturation"
MOST_LATE = 0.01  # of the requests' time may arrivals be noticed late, before the tails show it


def verdict_rates(params: Params) -> list[str]:
    """Keys of every rate that the verdict speaks of: those of params.yaml, then `saturation`."""
    return [*map(rate_key, params.arrival_rates), SATURATION]


def run_at(load: Load, rate: str) -> LoadRun | None:
    """The run at a rate; for `saturation` the one whose goodput is the maximum."""
    if rate == SATURATION:
        met = [run for run in load.runs if run.slo_attainment >= ATTAINMENT]
        return max(met, key=lambda run: run.request_goodput) if met else None
    return next((run for run in load.runs if rate in (run.rate, _as_key(run.rate))), None)


def _as_key(rate: str) -> str:
    try:
        return rate_key(float(rate))
    except ValueError:
        return rate


def starts(startup: Startup, cache: str) -> list[float]:
    """Ready times in s of every start from one cache state that was proved to be in it."""
    return [start.ready_s for start in startup.starts if start.cache == cache and start.proved]


def ready_s(startup: Startup) -> dict[str, float]:
    """Median ready time by cache state, only those measured."""
    found = {cache: starts(startup, cache) for cache in CACHES}
    return {cache: float(median(values)) for cache, values in found.items() if values}


def corners(startup: Startup, load: Load, rate: str, cache: str) -> Corners | None:
    """What a mode delivers at one rate from one cache state; None when start or rate was not measured.

    Ready time: median and range of the starts. Goodput: measured, with Wilson's interval of the attainment; at
    saturation from `max_goodput` up to just under the lowest rate that missed the limits.
    """
    ready = starts(startup, cache)
    goodput = _saturated(load) if rate == SATURATION else _offered(load, rate)
    if not ready or goodput is None:
        return None
    limit_s = load.slo.get("ttft_ms", 0.0) / 1e3
    capacity = max([load.max_goodput or 0.0, *(run.request_goodput for run in load.runs)])
    services = [
        Service(start, value, value if rate == SATURATION else max(capacity, value), limit_s)
        for start, value in zip((median(ready), max(ready), min(ready)), goodput, strict=True)
    ]
    point, worst, best = services
    return Corners(point, worst, best, complete=len(ready) > 1)


def _offered(load: Load, rate: str) -> tuple[float, float, float] | None:
    run = run_at(load, rate)
    if run is None:
        return None
    sent_per_s = run.num_sent / run.window_s if run.window_s > 0 else 0.0
    low, high = statistics.wilson(run.slo_attainment * run.num_sent, run.num_sent)
    return run.request_goodput, min(run.request_goodput, low * sent_per_s), max(run.request_goodput, high * sent_per_s)


def _saturated(load: Load) -> tuple[float, float, float] | None:
    if not load.runs:
        return None
    found = load.max_goodput or 0.0
    tried: list[LoadRun | Probe] = [*load.runs, *load.search]
    missed = [run.arrival_rate_per_s for run in tried if run.slo_attainment < ATTAINMENT and run.arrival_rate_per_s > found]
    return found, found, max(found, ATTAINMENT * min(missed, default=found))


def compared(mode: Corners, baseline: Corners, rate: str) -> tuple[Corners, Corners]:
    """Both, at the baseline's goodput where they were offered the same arrivals and served equally (within 1 %).

    A rate that both can bear separates them by their starts alone; the noise of a few requests must not.
    """
    reference = baseline.point.goodput_per_s
    if rate == SATURATION or reference <= 0 or abs(mode.point.goodput_per_s - reference) > EQUAL_SHARE * reference:
        return mode, baseline
    return _at_goodput(mode, reference), _at_goodput(baseline, reference)


def _at_goodput(corners: Corners, goodput_per_s: float) -> Corners:
    point, worst, best = (service._replace(goodput_per_s=goodput_per_s) for service in corners[:3])
    return Corners(point, worst, best, corners.complete)


def break_even_at(mode: Corners, baseline: Corners, rate: str, is_lower_bound: tuple[bool, bool]) -> BreakEven:
    """Break-even of a mode at one rate. `is_lower_bound`: whether the maximum of (mode, baseline) may be higher than measured.

    At saturation such a bound decides nothing against the mode, and one of the baseline nothing for it.
    """
    found = break_even(*compared(mode, baseline, rate))
    unproven = is_lower_bound[0] if found.answer == "never" else is_lower_bound[1]
    if rate == SATURATION and unproven:
        return BreakEven(answer="undecided", lifetime_s=found.lifetime_s, low_s=None, high_s=None)
    return found
