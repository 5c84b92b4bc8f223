"""steady_state/<factorial>.json: step times of the cells of one factorial, measured in rotations."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat

from stages.core.records.base import Document, Record

LoopTime = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Ceilings(Document):
    """What the device did at most, measured on it by a worker: see `stages.workers.ceilings`.

    `bandwidth_bytes_per_s`: a large copy, bytes read and written. `operations_per_s`: a large square matrix product in
    `precision`, 2 n^3 operations. `l2_bytes`: the size that the device reports.
    """

    bandwidth_bytes_per_s: float
    operations_per_s: float
    l2_bytes: int
    precision: str
    copied_bytes: int
    matrix_size: int


class Spin(Document):
    """Runs of a kernel that spins for a known time, `launched` or `replayed` in a CUDA graph: its own count, and both clocks, us."""

    how: str
    spun_us: list[float]
    device_us: list[float]
    wall_us: list[float]


class TimerCheck(Document):
    """Whether device events and the host's clock agree with that kernel within 1 %; None where it could not run. See `reason`."""

    agrees: bool | None
    reason: str
    spins: list[Spin] = Field(default_factory=list)


class Conditions(Document):
    """The machine at a block's end, and what changed since the block before; None where nothing reads it.

    `event_us`: time that the device's clocks were held down meanwhile, by reason (NVML's cumulative counters).
    `other_bytes`: device memory in use that is not this study's; `other_growth_bytes`: how much of it came since the
    set's processes were spawned. `cpu_share`: processor time of the worker / wall time
    of its block. `queue_share`: time that the worker waited for a processor / wall time of its block. `host_loop_us`: a
    fixed loop of Python on the worker's processor, before and after its block and on a GPU after what is timed (empty in
    records from before it was read).
    """

    sm_clock_mhz: int | None = None
    max_sm_clock_mhz: int | None = None
    power_w: float | None = None
    temperature_c: int | None = None
    event_us: dict[str, float] = Field(default_factory=dict)
    other_bytes: int | None = None
    other_growth_bytes: int | None = None
    load_average: float | None = None
    cpu_share: float | None = None
    queue_share: float | None = None
    host_loop_us: list[LoopTime] = Field(default_factory=list)


class Settling(Document):
    """Warm-up of one cell at one shape in one set: calls until two consecutive windows agreed and nothing compiled.

    `reason` says what stopped it, and, unless `settled`, what kept it from settling.
    """

    cell: str
    shape: str
    set_index: int
    num_calls: int
    settled: bool
    reason: str


class Block(Document):
    """Consecutive calls of one cell at one shape. Nothing is dropped.

    `wall_us`: host clock around one synchronised call, a sample a call. `device_us`: device events around one call
    (empty on a CPU). `pipelined_us`: one number, an unsynchronised burst divided by its length.
    `voided` says why the block does not count (a compile or capture happened inside), or is empty.
    `first_call_us`: the first call after another cell had the device; not among the samples. `repeated_us`: by clock, what
    was timed where the host was slow and then made again; it counts in nothing.
    """

    cell: str
    mode: str
    shape: str = Field(pattern=r"^(decode|prefill)/[1-9]\d*$")
    set_index: int
    rotation_index: int
    order_index: int
    wall_us: list[PositiveFloat]
    device_us: list[float]
    pipelined_us: float
    voided: str = ""
    first_call_us: float | None = None
    repeated_us: dict[Literal["wall_us", "device_us", "pipelined_us"], list[float]] = Field(default_factory=dict)
    conditions: Conditions | None = None


class SequenceRun(Document):
    """One pass of one cell over the sampled step sequence, with a synchronisation after every step, as the service has.

    `host_loop_us`: as in `Conditions`, before the pass and on a GPU after each of its steps. `repeated_s`: steps that were
    timed where the host was slow and then made again; they are in no sum.
    """

    cell: str
    mode: str
    set_index: int
    rotation_index: int
    sequence_s: float
    num_steps: int
    num_decode_steps: int
    voided: str = ""
    host_loop_us: list[LoopTime] = Field(default_factory=list)
    repeated_s: list[float] = Field(default_factory=list)


class Cell(Document):
    """One cell of the factorial: its key (E, C, R, CR, an extra, or an A/A twin such as `E#2`) and what became of it."""

    cell: str
    mode: str
    status: Literal["ok", "failed", "skipped", "unavailable"]
    reason: str = ""


class Rotations(Document):
    """All blocks of all sets of one factorial, in the order they ran. Shapes are named `decode/8`, `prefill/512`.

    `slowed`: blocks that ran on a slow processor of the host and were measured again, so that they count in nothing.

    `stopped`: a sentence a set, what ended its rotations: `cap: ...` or `target: ...`. `timer`: the check of the clocks, on a
    GPU. `heat`: where only the fastest cells went on, the passes over the sequence that chose them.
    """

    factorial: str
    cells: list[Cell]
    num_sets: int
    decode_context_tokens: int
    sequence_steps: int
    sequence_steps_in_trace: int
    blocks: list[Block]
    sequences: list[SequenceRun]
    together: bool = True
    settling: list[Settling] = Field(default_factory=list)
    ceilings: Ceilings | None = None
    device: str = ""
    stopped: list[str] = Field(default_factory=list)
    timer: TimerCheck | None = None
    slowed: list[Block] = Field(default_factory=list)
    heat: list[SequenceRun] = Field(default_factory=list)


class SteadyStateRecord(Record[Rotations]):
    """steady_state/<factorial>.json."""
