"""A synthetic chat trace: seeded lengths and arrivals with the statistics of a public trace."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy

from stages.core.records.plan import Request
from stages.traces.checks import require, require_between

_Z95 = 1.6448536269514722  # standard normal, 95 %


@dataclass
class Chat:
    """Lengths: log-normal through p50 and p95 (tokens), cut at the maximum. Arrivals: gamma inter-arrival times.

    Defaults are the Azure 2023 conversation trace (Patel et al., "Splitwise", ISCA 2024): rate, coefficient of
    variation of the inter-arrival times, p50 and p95; the maximum is that trace's p99, where its lengths pile up.
    Gamma arrivals with shape 1/cv^2 and scale cv^2/rate are the rule of S-LoRA's `benchmarks/trace.py`.
    """

    name: str = "chat"
    seed: int = 0
    num_requests: int = 72
    rate_per_s: float = 5.53
    arrival_cv: float = 1.09
    prompt_p50: int = 1020
    prompt_p95: int = 4083
    prompt_max: int = 4142
    output_p50: int = 129
    output_p95: int = 451
    output_max: int = 601

    def __post_init__(self) -> None:
        """Raise UserError for a number out of range, or quantiles that do not ascend."""
        require_between("trace.seed", self.seed, 0, 2**32 - 1)
        require_between("trace.num_requests", self.num_requests, 2, 1_000_000)
        require_between("trace.rate_per_s", self.rate_per_s, 1e-3, 1e6)
        require_between("trace.arrival_cv", self.arrival_cv, 0.01, 100)
        _check_quantiles("prompt", self.prompt_p50, self.prompt_p95, self.prompt_max)
        _check_quantiles("output", self.output_p50, self.output_p95, self.output_max)

    def files(self) -> list[Path]:
        """None: everything is drawn from the seed."""
        return []

    def requests(self) -> list[Request]:
        """`num_requests` requests, the first at 0 s; a larger number of requests begins with the same ones."""
        arrivals_s = self._arrivals_s()
        prompts = self._lengths(1, self.prompt_p50, self.prompt_p95, self.prompt_max)
        outputs = self._lengths(2, self.output_p50, self.output_p95, self.output_max)
        lines = zip(arrivals_s, prompts, outputs, strict=True)
        return [Request(request_id=i, arrival_s=a, prompt_tokens=p, output_tokens=o) for i, (a, p, o) in enumerate(lines)]

    def _arrivals_s(self) -> list[float]:
        variance = self.arrival_cv**2
        gaps_s = numpy.random.default_rng([self.seed, 0]).gamma(1 / variance, variance / self.rate_per_s, self.num_requests - 1)
        return [0.0, *numpy.cumsum(gaps_s).round(6).tolist()]

    def _lengths(self, stream: int, p50: int, p95: int, maximum: int) -> list[int]:
        normal = numpy.random.default_rng([self.seed, stream]).standard_normal(self.num_requests)
        lengths = p50 * numpy.exp(normal * math.log(p95 / p50) / _Z95)
        return [int(length) for length in numpy.clip(numpy.rint(lengths), 1, maximum)]


def _check_quantiles(quantity: str, p50: int, p95: int, maximum: int) -> None:
    require_between(f"trace.{quantity}_max", maximum, 1, 10**8)
    ascending = 1 <= p50 <= p95 <= maximum
    require(ascending, f"trace.{quantity}_p50", f"must be 1 <= p50 <= {quantity}_p95 <= {quantity}_max", (p50, p95, maximum), "Sort them.")
