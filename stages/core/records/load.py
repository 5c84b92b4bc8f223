"""load/<mode>.json: the worker alone under real arrivals."""

from __future__ import annotations

from stages.core.records.base import Document, Record


class ServedRequest(Document):
    """One request, times in ms from its arrival. Requests not finished in the grace time have `completed` false."""

    request_id: int
    arrival_s: float
    prompt_tokens: int
    output_tokens: int
    queue_ms: float | None
    ttft_ms: float | None
    tpot_ms: float | None
    e2el_ms: float | None
    completed: bool
    hit_by: str = ""


class Percentiles(Document):
    """Median and tails of one quantity. p99 is None under 459 samples (MLPerf LoadGen's count), p90 under 20."""

    n: int
    p50: float | None
    p90: float | None
    p99: float | None
    mean: float | None


class LoadRun(Document):
    """One rate. `request_goodput`: requests sent in the steady window that met every limit, divided by the window.

    `slo_attainment`: their share of those sent. `batch_histogram`: decode steps by real batch size, this mode's own.
    """

    rate: str
    arrival_rate_per_s: float
    window_s: float
    num_sent: int
    num_completed: int
    num_failed: int
    request_goodput: float
    slo_attainment: float
    ttft_ms: Percentiles
    tpot_ms: Percentiles
    e2el_ms: Percentiles
    queue_ms: Percentiles
    queueing_share: float
    dispatch_lateness_ms: Percentiles
    num_decode_steps: int
    num_prefill_steps: int
    batch_histogram: dict[str, int]
    host_us_per_decode_step: float
    num_compiles_during: int
    energy_j: float | None
    peak_bytes: int
    requests: list[ServedRequest]


class Load(Document):
    """Every rate of one mode. `max_goodput` is the highest goodput among rates with attainment >= 0.99, or None.

    `saturated` says that the highest rate tried still met it, so the true maximum is higher.
    """

    slo: dict[str, float]
    runs: list[LoadRun]
    max_goodput: float | None
    max_goodput_is_lower_bound: bool


class LoadRecord(Record[Load]):
    """load/<mode>.json."""
