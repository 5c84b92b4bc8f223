"""load/<mode>.json: the worker alone under real arrivals."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

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


class SteadyWindow(Document):
    """The part of a run after its start: from the mean time a request takes (by then requests leave as they come), to its end.

    Counted by arrival, as for the whole run.
    """

    begin_s: float
    end_s: float
    num_sent: int
    request_goodput: float
    slo_attainment: float


class MemoryGrowth(Document):
    """Memory of the worker along the run: `samples` are [s since the start, bytes]; torch's allocator on a GPU, resident set on a CPU.

    `verdict` by Kendall's test for a trend (one-sided 99 %) and a growth of at least 1 % and 16 MiB over the run.
    """

    samples: list[tuple[float, int]]
    bytes_per_s: float
    verdict: Literal["grows", "flat", "undecided"]


class Probe(Document):
    """One run of the search for `max_goodput`: arrivals at this rate and seed, and what became of them."""

    arrival_rate_per_s: float
    seed: int
    request_goodput: float
    slo_attainment: float
    met: bool


class HostWork(Document):
    """Host time of the loop itself a decode step, us: without the mode's own call and without the waiting for the device.

    Means of `scheduling_us` (arrivals, admission), `sampling_us` (tokens chosen on the device sent to the host and read
    there), `bookkeeping_us` (what is finished leaves, slots are compacted). `by_batch`: median of their sum by active batch.
    """

    scheduling_us: float
    sampling_us: float
    bookkeeping_us: float
    by_batch: dict[str, float]


class Collections(Document):
    """Python's garbage collections in this run: full ones (of all generations), the longest pause and all together."""

    num_full: int
    longest_ms: float
    total_ms: float


class Difference(Document):
    """A served token that eager would not have chosen: token `token` (from 0) of a request.

    Logits of eager along the served tokens: `margin` between its two best, `given_up` from the best to the served one, `noise`
    its largest error against the reference at that step. A fault where `given_up` is above 4 x `noise`, else a tie. None: no number.
    """

    request_id: int
    token: int
    margin: float | None
    given_up: float | None
    noise: float | None
    is_fault: bool


class ServedAnswers(Document):
    """Tokens of a seeded sample of requests under load, against eager serving each alone. `first`: the first fault, else the first tie."""

    verdict: Literal["correct", "wrong", "not_checked"]
    num_requests: int
    num_tokens: int
    num_ties: int
    num_faults: int
    first: Difference | None = None


class LoadRun(Document):
    """One rate. `request_goodput`: requests sent in the steady window that met every limit, divided by the window.

    `process`: how arrivals came about (recorded, poisson, gamma). `num_failed`: sent but not completed, of which
    `num_never_begun` waited in the queue to the end. `busy_s`: seconds in which the loop ran steps.
    `queueing`: what the queue means at this load, in a sentence.
    `slo_attainment`: their share of those sent. `batch_histogram`: decode steps by real batch size, this mode's own.
    `itl_ms`: gaps between the tokens of a request, of all requests together. `max_active`: sequences that the loop keeps
    in flight at most (the model's slots, or fewer where `device_memory_bytes` holds fewer). `answers`: what a sample of
    requests got. `num_baseline_steps`: steps that the mode gave to the baseline path, since it did not support their shape.
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
    process: str = "recorded"
    num_never_begun: int = 0
    busy_s: float | None = None
    steady: SteadyWindow | None = None
    memory: MemoryGrowth | None = None
    queueing: str = ""
    lateness_share: float | None = None
    energy_per_good_j: float | None = None
    itl_ms: Percentiles | None = None
    host_work: HostWork | None = None
    max_active: int | None = None
    answers: ServedAnswers | None = None
    num_baseline_steps: int = 0
    gc: Collections | None = None


class Load(Document):
    """Every rate of one mode. `max_goodput` is the highest goodput among rates with attainment >= 0.99, or None.

    `max_goodput_is_lower_bound`: the highest rate tried still met it, so the true maximum is higher. `search`: the runs that
    looked for it by bisection, where the measure asks for that.
    """

    slo: dict[str, float]
    runs: list[LoadRun]
    max_goodput: float | None
    max_goodput_is_lower_bound: bool
    search: list[Probe] = Field(default_factory=list)


class LoadRecord(Record[Load]):
    """load/<mode>.json."""
