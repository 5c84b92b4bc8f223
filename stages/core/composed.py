"""The composed configuration of one mode (config/<mode>.yaml), typed.

A model, a mode and a trace bring their own fields (`core.build`); everything else is typed here.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from stages.core.bounds import check_most
from stages.core.errors import UserError
from stages.core.settings import PRECISIONS, Slo
from stages.core.stage_names import MEASURING_STAGES
from stages.core.typed_yaml import load_yaml, one_of, positive, typed

MAY_BE_ZERO = ("warm_starts", "artifact_starts", "search_s", "target_width", "sampled_requests")
MAX_ARRIVALS = 10**7
ARRIVALS = ("recorded", "poisson", "gamma")
BESIDE_THE_MODE = {  # keys of a composed file that decide one stage's record only
    "warmup": ("baseline",),  # the middle way serves it
    "capture": ("device_memory_bytes",),
    "load": ("baseline", "slo", "arrival_rates", "device_memory_bytes"),  # its sample is compared with the baseline
    "correctness": ("baseline",),
}


@dataclass(kw_only=True)
class WarmupSettings:
    """How many starts of each kind one mode makes. `middle_way`: also one that serves eager while it compiles."""

    cold_starts: int
    warm_starts: int
    artifact_starts: int
    middle_way: bool = False


@dataclass(kw_only=True)
class CaptureSettings:
    """Steps of the trace that the proof walks (modes that replay, modes that launch), and calls profiled a shape."""

    max_replayed_steps: int
    max_launched_steps: int
    profiled_calls: int


@dataclass(kw_only=True)
class SteadyStateSettings:
    """Sets of fresh processes, rotations a set at most, synchronised calls a block, calls a burst, sampled sequence steps.

    `target_width`: a set stops early once every ratio's interval inside it is this narrow (0: it never does).
    """

    num_sets: int
    num_rotations: int
    calls_per_block: int
    pipelined_calls: int
    sequence_steps: int
    twins: bool
    target_width: float = 0.0


@dataclass(kw_only=True)
class LoadSettings:
    """Seconds of arrivals sent, and seconds waited for what is still in flight; how arrivals come about.

    `process`: `recorded` (the trace's own), `poisson`, or `gamma` with `gamma_shape` (below 1: bursts). `search_s`: seconds
    a run of the search for `max_goodput` by bisection, 0 for no search. `sampled_requests`: of each rate, compared with eager.
    `one_worker`: all rates and the search in one worker, which saves starts and lets what one rate leaves behind (memory, what
    compiled late) meet the next; only the last rate is sampled then. `freeze_gc`: what the ready worker holds is left out of
    Python's garbage collections (`gc.freeze`).
    """

    duration_s: float
    grace_s: float
    process: str = "recorded"
    gamma_shape: float = 0.5
    search_s: float = 0.0
    sampled_requests: int = 6
    one_worker: bool = False
    freeze_gc: bool = False

    def __post_init__(self) -> None:
        """Raise UserError for an unknown process, or a shape with which nearly all gaps are 0 (or all are alike)."""
        if not 1e-3 <= self.gamma_shape <= 1e4:
            raise UserError("measure.load.gamma_shape", "must be from 0.001 to 10000", self.gamma_shape, "0.5 is bursty, 1 is poisson.")
        if self.process not in ARRIVALS:
            raise UserError("measure.load.process", f"must be one of {', '.join(ARRIVALS)}", self.process, "Fix it.")


@dataclass(kw_only=True)
class CorrectnessSettings:
    """Calls with fresh inputs a shape (at least 6: with Trees the first two are no replays), and examples a task."""

    calls_per_shape: int
    num_examples: int

    def __post_init__(self) -> None:
        """Fewer than six calls would compare hardly any replay."""
        if self.calls_per_shape < 6:
            raise UserError("measure.correctness.calls_per_shape", "must be at least 6", self.calls_per_shape, "Raise it.")


@dataclass(kw_only=True)
class MeasureSettings:
    """How much is measured; conf/measure/ holds the presets."""

    preset: str
    plan: dict[str, Any]
    warmup: WarmupSettings
    capture: CaptureSettings
    steady_state: SteadyStateSettings
    load: LoadSettings
    correctness: CorrectnessSettings


@dataclass(kw_only=True)
class LaunchSettings:
    """CPU threads of a worker, and the longest one request to it may take."""

    num_threads: int = 1
    request_timeout_s: float = 450.0


@dataclass(kw_only=True)
class Settings:
    """The composed configuration of one mode, with `model`, `mode`, `trace` still as nodes for `core.build`.

    `baseline` is the mode that answers are compared with, also a node.
    """

    name: str
    model: dict[str, Any]
    mode: dict[str, Any]
    trace: dict[str, Any]
    measure: MeasureSettings
    launch: LaunchSettings
    device: str
    precision: str
    device_memory_bytes: int | None
    seed: int
    slo: Slo
    arrival_rates: list[Any]
    lifetimes_s: list[float]
    baseline: dict[str, Any] = field(default_factory=dict)
    code: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Numbers of the measurement must be positive, except further starts: the first cold one fills the caches."""
        for section in MEASURING_STAGES:
            for key, value in vars(getattr(self.measure, section)).items():
                if isinstance(value, bool | str) or (key in MAY_BE_ZERO and value == 0):
                    continue
                positive(f"measure.{section}.{key}", [value], "Fix conf/measure/ or the override.")
                check_most(f"measure.{section}.{key}", value)
        one_of("precision", self.precision, PRECISIONS)
        for key, value in vars(self.launch).items():
            positive(f"launch.{key}", [value], "Fix conf/launch/ or the override.")
            check_most(f"launch.{key}", value)
        if not 0 <= self.seed < 2**32:
            raise UserError("seed", "must be from 0 to 2**32 - 1", self.seed, "Any small number does.")
        for rate in self.arrival_rates:
            self._check_arrivals(rate)

    def _check_arrivals(self, rate: Any) -> None:
        """One request at least is expected, else the goodput of the one sent exceeds the rate; and they fit into memory."""
        duration_s = self.measure.load.duration_s
        if rate != "recorded" and not 1 <= rate * duration_s <= MAX_ARRIVALS:
            rule = f"must let 1 to {MAX_ARRIVALS} requests arrive in measure.load.duration_s ({duration_s:g})"
            raise UserError("arrival_rates", rule, rate, "Change the rate or the duration.")


def relevant_config(stage: str, settings: Settings) -> dict[str, Any]:
    """The keys of a composed configuration that decide a measuring stage's record (dvc.yaml tracks the same)."""
    keys = ("model", "mode", "device", "precision", "seed", "launch")
    extra = BESIDE_THE_MODE.get(stage, ())
    document = asdict(settings)
    code = {key: settings.code[key] for key in (stage, "files") if key in settings.code}
    return {**{key: document[key] for key in (*keys, *extra)}, "measure": document["measure"][stage], "code": code}


def read_settings(file: Path) -> Settings:
    """Read and check a composed configuration. Raises UserError."""
    return typed_settings(load_yaml(file), file.name)


def typed_settings(document: Any, where: str) -> Settings:
    """Check a composed document. Raises UserError."""
    return typed(Settings, document, where)
