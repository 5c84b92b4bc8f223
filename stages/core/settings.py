"""params.yaml, typed: the study's choices."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stages.core import paths
from stages.core.errors import UserError
from stages.core.typed_yaml import load_yaml, one_of, positive, typed, unique

BASELINE = "eager"
PRECISIONS = ("fp32", "bf16")
DEVICES = ("auto", "cpu", "cuda")
LONGEST_S = 1e9
"""Thirty years: the longest life of a worker, the longest wait."""


@dataclass(kw_only=True)
class Slo:
    """Limits a request must meet to count: first token and mean time per output token, ms."""

    ttft_ms: float = 1000.0
    tpot_ms: float = 50.0


@dataclass(kw_only=True)
class GateSettings:
    """`baseline`: a kept study that this one is compared with, or null."""

    baseline: str | None = None


@dataclass(kw_only=True)
class Params:
    """params.yaml. Raises UserError when a rule across keys is broken."""

    name: str
    model: str
    trace: str
    modes: list[str]
    factorials: list[str]
    measure: str
    device: str = "auto"
    precision: str = "fp32"
    device_memory_bytes: int | None = None
    slo: Slo = field(default_factory=Slo)
    arrival_rates: list[Any] = field(default_factory=lambda: ["recorded"])
    lifetimes_s: list[float] = field(default_factory=lambda: [60.0, 600.0, 3600.0, 86400.0])
    gate: GateSettings = field(default_factory=GateSettings)
    overrides: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Check values and lists."""
        if not self.name.strip() or not self.name.isprintable() or len(self.name) > 100:
            raise UserError("name", "must be one line of 1 to 100 characters", self.name, "Name the study.")
        one_of("device", self.device, DEVICES)
        one_of("precision", self.precision, PRECISIONS)
        for key in ("modes", "factorials"):
            unique(key, getattr(self, key))
        for key, example in (("modes", "[eager, compile]"), ("arrival_rates", "[recorded]"), ("lifetimes_s", "[60, 3600]")):
            if not getattr(self, key):
                raise UserError(key, "must name at least one", getattr(self, key), f"For example {example}.")
        if BASELINE not in self.modes:
            raise UserError("modes", f"must list {BASELINE}, the baseline of every comparison", self.modes, f"Add {BASELINE}.")
        self._check_rates_and_lifetimes()
        positive("slo.ttft_ms", [self.slo.ttft_ms])
        positive("slo.tpot_ms", [self.slo.tpot_ms])
        if self.device_memory_bytes is not None:
            positive("device_memory_bytes", [self.device_memory_bytes])

    def _check_rates_and_lifetimes(self) -> None:
        """Both are keys of a study, with six digits: two that differ in a later one stand twice."""
        for rate in self.arrival_rates:
            if rate != "recorded" and not _is_rate(rate):
                raise UserError("arrival_rates", "must be positive numbers (1/s, 1e-6 to 1e6) or `recorded`", rate, "Fix params.yaml.")
        positive("lifetimes_s", self.lifetimes_s)
        if max(self.lifetimes_s) > LONGEST_S:
            raise UserError("lifetimes_s", f"must be at most {LONGEST_S:g} s", max(self.lifetimes_s), "Fix params.yaml.")
        for key in ("arrival_rates", "lifetimes_s"):
            unique(key, [value if isinstance(value, str) else f"{value:g}" for value in getattr(self, key)])


def _is_rate(rate: Any) -> bool:
    return isinstance(rate, int | float) and not isinstance(rate, bool) and 1e-6 <= rate <= 1e6


def params_file() -> Path:
    """$OPMODE_PARAMS (a sweep's cell), or params.yaml at the root."""
    return Path(os.environ.get("OPMODE_PARAMS") or paths.root() / "params.yaml")


def read_params(file: Path | None = None) -> Params:
    """Read and check params.yaml. Raises UserError."""
    file = file or params_file()
    return typed(Params, load_yaml(file), file.name)
