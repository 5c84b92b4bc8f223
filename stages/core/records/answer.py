"""attribution.json: what the records say together. study.json carries these parts on, under the names of its schema."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stages.core.records.base import Document, Record
from stages.core.records.following import HostFollowing
from stages.core.records.lifetime import Lifetime
from stages.core.records.verdict import Verdict
from stages.core.records.winner import Winner

Class = Literal["faster", "slower", "same", "undecided"]


class Estimate(Document):
    """A value with its interval over sets (Student-t, df = sets - 1). With one set `low` and `high` are None."""

    value: float
    low: float | None
    high: float | None
    num_sets: int


class VsBaseline(Document):
    """speedup = eager / mode at one shape, above 1 is faster, measured inside rotations."""

    speedup: float
    low: float | None
    high: float | None
    verdict: Class
    factorial: str


class Repeat(Document):
    """The speed-ups of one mode at one point from every factorial that timed it; the first is the one used.

    `agree`: their intervals overlap, or without intervals they are within 5 %.
    """

    speedups: list[VsBaseline]
    agree: bool


class Timing(Document):
    """Step time of one mode at one shape, pooled over the sets of one factorial; us. p99 needs 459 samples, p90 20."""

    median: float
    p90: float | None
    p99: float | None
    n: int
    ecdf: list[float]


class ShapeTimes(Document):
    """The three clocks at one shape (`decode/8`), and the comparison with eager on `wall_us`. `factorial`: where they come from."""

    wall_us: Timing
    device_us: Timing | None
    pipelined_us: Timing
    vs_baseline: VsBaseline | None
    factorial: str = ""


class SequenceTimes(Document):
    """The headline: one pass over the sampled step sequence. `tokens_per_s`: None where the pass was not the plan's sample."""

    sequence_s: Estimate
    num_steps: int
    steps_in_trace: int
    tokens_per_s: float | None
    vs_baseline: VsBaseline | None


class Contrasts(Document):
    """One point (a shape, or `sequence`) of one factorial; times in us. None where a cell is missing or unconfirmed.

    Each contrast is estimated from its own differences inside rotations, so
    `compiled_alone + replay_alone - interaction` can miss `total`: `closure_error_us` is that miss. `set_us`: mean of each
    set by cell, which `cell_us` is the mean of.
    """

    point: str
    total: Estimate | None
    compiled_alone: Estimate | None
    replay_alone: Estimate | None
    kernels_given_replay: Estimate | None
    replay_given_compiled: Estimate | None
    interaction: Estimate | None
    closure_error_us: float | None
    cell_us: dict[str, float]
    measured_speedup: float | None
    product_of_speedups: float | None
    shapley_us: dict[str, float]
    busy_saved_us: float | None
    idle_saved_us: float | None
    missing: list[str]
    set_us: dict[str, list[float]] = Field(default_factory=dict)


class TwinPair(Document):
    """An A/A pair: the same mode twice in one rotation. `different` counts against the machine, not the mode."""

    mode: str
    point: str
    ratio: float
    low: float | None
    high: float | None
    different: bool


class SpeedShift(Document):
    """The mode and shape whose blocks in one factorial lie furthest apart: the least and the largest median of a block, us.

    `num_shifted` of `of` cells and shapes have blocks that differ by more than 30 %.
    """

    mode: str
    point: str
    least_us: float
    most_us: float
    num_shifted: int
    of: int


class FactorialAnswer(Document):
    """Everything one factorial says. `cells`: cell key -> mode. `points`: `decode/1`..., `sequence`.

    `conditions`: blocks left out or kept under throttling and contention, cells that did not settle, in sentences.
    `speed_shift`: None where no cell's blocks differ by more than 30 %. `follows_host`: by point, then by cell.
    """

    cells: dict[str, str]
    cell_reasons: dict[str, str]
    num_sets: int
    points: dict[str, Contrasts]
    twins: list[TwinPair]
    winners: dict[str, Winner] = Field(default_factory=dict)
    conditions: list[str] = Field(default_factory=list)
    speed_shift: SpeedShift | None = None
    follows_host: dict[str, dict[str, HostFollowing]] = Field(default_factory=dict)


class Bottleneck(Document):
    """wall = busy + idle at one shape; shares of wall sum to 1. `dilation` = profiled wall / unprofiled wall.

    Ceilings (baseline only): replay can save at most wall - busy, kernels at most busy - floor.
    """

    name: str
    wall_us: float
    busy_us: float
    shares: dict[str, float]
    dilation: float
    sentence: str


class Floor(Document):
    """max(bytes / bandwidth, operations / rate) at one shape; `ratio` = measured device or wall time / floor."""

    floor_us: float | None
    ratio: float | None
    reason: str = ""


class ModeAnswer(Document):
    """What attribution adds to the records of one mode."""

    steady_state: dict[str, ShapeTimes]
    sequence: SequenceTimes | None
    bottleneck: dict[str, Bottleneck]
    floor: dict[str, Floor]
    lifetime: Lifetime | None
    repeats: dict[str, Repeat] = Field(default_factory=dict)


class Answer(Document):
    """attribution.json."""

    modes: dict[str, ModeAnswer]
    factorials: dict[str, FactorialAnswer]
    verdict: Verdict


class AttributionRecord(Record[Answer]):
    """attribution.json."""
