"""From the requests that a worker served at one rate to the numbers of the run."""

from __future__ import annotations

from typing import Any

from stages.core import trends
from stages.core.records.load import LoadRun, MemoryGrowth, Percentiles, ServedRequest, SteadyWindow
from stages.core.service_levels import meets, percentiles

LEAST_GROWTH_BYTES = 16 << 20
LEAST_GROWTH_SHARE = 0.01
DOMINATES = 0.5
BUSY = 0.95


def summary(
    served: dict[str, Any], rate: str, rate_per_s: float, window_s: float, slo: dict[str, float], process: str = "recorded"
) -> LoadRun:
    """A run's numbers from its requests; a request without a second token has no TPOT to miss."""
    requests = [ServedRequest(**request) for request in served["requests"]]
    good = [request for request in requests if meets(request, slo)]
    completed = [request for request in requests if request.completed]
    share = queueing_share(completed)
    return LoadRun(
        rate=rate,
        process=process,
        arrival_rate_per_s=rate_per_s,
        window_s=window_s,
        num_sent=len(requests),
        num_completed=len(completed),
        num_failed=len(requests) - len(completed),
        num_never_begun=sum(request.queue_ms is None for request in requests),
        request_goodput=len(good) / window_s,
        slo_attainment=len(good) / len(requests),
        steady=steady_window(requests, window_s, slo),
        ttft_ms=_percentiles(requests, "ttft_ms"),
        tpot_ms=_percentiles([request for request in completed if request.output_tokens > 1], "tpot_ms"),
        e2el_ms=_percentiles(completed, "e2el_ms"),
        queue_ms=_percentiles(requests, "queue_ms"),
        queueing_share=share,
        queueing=queueing_sentence(share, rate_per_s, len(completed), served["busy_s"], window_s),
        dispatch_lateness_ms=percentiles(served["lateness_ms"]),
        lateness_share=_share(sum(served["lateness_ms"]), sum(request.e2el_ms or 0.0 for request in completed)),
        num_decode_steps=served["num_decode_steps"],
        num_prefill_steps=served["num_prefill_steps"],
        num_baseline_steps=served.get("num_baseline_steps", 0),
        batch_histogram=served["batch_histogram"],
        host_us_per_decode_step=served["host_us_per_decode_step"],
        busy_s=served["busy_s"],
        num_compiles_during=served["num_compiles_during"],
        gc=served.get("gc"),
        energy_j=served["energy_j"],
        energy_per_good_j=None if served["energy_j"] is None else _share(served["energy_j"], len(good)),
        peak_bytes=served["peak_bytes"],
        itl_ms=served.get("itl_ms"),
        host_work=served.get("host_work"),
        max_active=served.get("max_active"),
        memory=memory_growth(served["memory_samples"]),
        requests=requests,
    )


def steady_window(requests: list[ServedRequest], window_s: float, slo: dict[str, float]) -> SteadyWindow | None:
    """The run after its start: the mean time of a completed request, at most half of the window. None when nothing arrived in it."""
    spent_s = [request.e2el_ms / 1e3 for request in requests if request.completed and request.e2el_ms is not None]
    begin_s = min(sum(spent_s) / len(spent_s), window_s / 2) if spent_s else window_s / 2
    sent = [request for request in requests if begin_s <= request.arrival_s <= window_s]
    if not sent:
        return None
    good = sum(meets(request, slo) for request in sent)
    return SteadyWindow(
        begin_s=begin_s,
        end_s=window_s,
        num_sent=len(sent),
        request_goodput=good / (window_s - begin_s),
        slo_attainment=good / len(sent),
    )


def memory_growth(samples: list[tuple[float, int]]) -> MemoryGrowth | None:
    """The verdict on memory along the run; None without samples."""
    if not samples:
        return None
    times_s, values = [at for at, _ in samples], [value for _, value in samples]
    least = max(LEAST_GROWTH_BYTES, LEAST_GROWTH_SHARE * values[0])
    return MemoryGrowth(samples=samples, bytes_per_s=trends.slope(times_s, values), verdict=trends.trend(times_s, values, least))


def queueing_share(completed: list[ServedRequest]) -> float:
    """Time in the queue over the whole time of completed requests; 0 without any."""
    return _share(sum(request.queue_ms or 0.0 for request in completed), sum(request.e2el_ms or 0.0 for request in completed)) or 0.0


def queueing_sentence(share: float, rate_per_s: float, num_completed: int, busy_s: float, window_s: float) -> str:
    """What the queue means: whether a faster step helps at this load, and at which load it would.

    The loop's capacity is what it completed a second of running steps.
    """
    if not num_completed or busy_s <= 0:
        return "No request was completed: nothing can be said about the queue."
    capacity = num_completed / busy_s
    text = f"Requests spend {share:.0%} of their time in the queue; the loop completes {capacity:.3g} requests a second of work"
    if share < DOMINATES:
        return f"{text}: a faster step shortens them almost by as much."
    if rate_per_s >= BUSY * capacity or busy_s >= BUSY * window_s:
        needed = max(1.0, rate_per_s / capacity)
        return (
            f"{text}, and {rate_per_s:.3g} arrive: a slightly faster step changes little at this load, since the queue grows until a step "
            f"is {needed:.2g} times as fast; below about {BUSY * capacity:.3g} requests/s the step decides."
        )
    return f"{text}, though only {rate_per_s:.3g} arrive: they come in bursts, and the queue is that of the bursts."


def _percentiles(requests: list[ServedRequest], quantity: str) -> Percentiles:
    return percentiles([value for value in (getattr(request, quantity) for request in requests) if value is not None])


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
