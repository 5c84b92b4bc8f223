"""The mode's logits against a reference in higher precision, along the same tokens, at every planned shape.

The mode's error may be a fixed multiple of eager's own, so that a tolerance never has to be tuned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import torch

from stages.workers.probes.bench import ERROR_MULTIPLE, TIE, Bench, admit, forced_decode
from stages.workers.probes.divergence import Divergences, eager_variance
from stages.workers.probes.probe import Document, Probe, held_to
from stages.workers.service import generator_of, random_prompts

KL_FLOOR = {"fp32": 1e-10, "bf16": 1e-4}


def _zeros() -> dict[str, float]:
    return {"mode": 0.0, "eager": 0.0}


@dataclass
class Comparison:
    """Sums over the calls of one shape; logits compared in float64 on the device."""

    num_calls: int = 0
    squared: dict[str, float] = field(default_factory=_zeros)
    divergences: Divergences = field(default_factory=Divergences)
    reference_squared: float = 0.0
    num_unequal: int = 0
    num_tokens: int = 0
    num_token_faults: int = 0
    num_nonfinite: int = 0

    def add(self, mode: torch.Tensor, eager: torch.Tensor, reference: torch.Tensor) -> None:
        """One call's logits [n, v] of the three services."""
        exact, seen = reference.double(), {"mode": mode.double(), "eager": eager.double()}
        self.num_calls += 1
        self.num_unequal += int((mode != eager).sum())
        self.num_nonfinite += int((~torch.isfinite(mode)).sum())
        for name, logits in seen.items():
            self.squared[name] += float((logits - exact).square().sum())
        self.divergences.add(**seen, exact=exact)
        self.reference_squared += float(exact.square().sum())
        self._add_tokens(mode, exact, float((seen["eager"] - exact).abs().max()))

    def error(self, name: str) -> float:
        """Relative root-mean-square error of `mode` or `eager` against the reference."""
        return float((self.squared[name] / max(self.reference_squared, 1e-300)) ** 0.5)

    def _add_tokens(self, mode: torch.Tensor, exact: torch.Tensor, noise: float) -> None:
        """A greedy token may differ only where the reference's margin is within eager's own noise."""
        best, chosen = exact.amax(dim=-1), mode.argmax(dim=-1)
        given_up = best - exact.gather(1, chosen[:, None])[:, 0]
        self.num_tokens += len(chosen)
        self.num_token_faults += int((given_up > TIE * noise + 1e-12).sum())


def visits(bench: Bench) -> list[str]:
    """Smallest, largest, smallest again, then the rest: a step must not depend on the shape before it."""
    sizes = [f"decode/{size}" for size in bench.sizes]
    again = sizes[:1] if len(sizes) > 1 else []
    return [*(f"prefill/{size}" for size in bench.service.plan.prompt_sizes), sizes[0], *sizes[:0:-1][:1], *again, *sizes[1:-1]]


def _run(bench: Bench) -> Iterator[Document]:
    seen: dict[str, Comparison] = {}
    for shape in visits(bench):
        _compare(bench, shape, seen.setdefault(shape, Comparison()))
    variance = ERROR_MULTIPLE[bench.precision] ** 2 * eager_variance(comparison.divergences for comparison in seen.values())
    for shape, comparison in seen.items():
        yield from _checks(bench, shape, comparison, variance)


def _compare(bench: Bench, shape: str, comparison: Comparison) -> None:
    phase, _, size = shape.partition("/")
    compare = _compare_prefill if phase == "prefill" else _compare_decode
    compare(bench, int(size), comparison)


def _compare_prefill(bench: Bench, size: int, comparison: Comparison) -> None:
    longest, count = min(size, bench.service.plan.context_tokens), bench.calls_per_shape
    lengths = [max(1, longest - index * longest // (2 * count)) for index in range(count)]
    for prompt in random_prompts(bench.service, lengths, seed=size):
        comparison.add(*(service.prefill(0, prompt)[0].clone() for service in bench.trio))


def _compare_decode(bench: Bench, rows: int, comparison: Comparison) -> None:
    for service in bench.trio:
        admit(service, rows, seed=rows + comparison.num_calls)
    generator = generator_of(bench.service, rows + comparison.num_calls)
    for _ in range(bench.calls_per_shape):
        forced = torch.randint(bench.service.model.vocabulary(), (rows,), generator=generator)
        comparison.add(*(forced_decode(service, forced) for service in bench.trio))


def _checks(bench: Bench, shape: str, seen: Comparison, variance: float) -> Iterator[Document]:
    own, calls = seen.error("eager"), seen.num_calls
    limit = bench.error_limit(own, seen.num_tokens)
    yield held_to("teacher_forced_logits", shape, seen.error("mode"), limit, calls, f"eager's own error {own:.3g}")
    apart, floor = seen.divergences, KL_FLOOR[bench.precision]
    reason = f"nats a token, eager's own {apart.mean('eager'):.3g}"
    yield held_to("kl_divergence", shape, apart.mean("mode"), apart.limit(variance, bench.rounding) + floor, calls, reason)
    yield held_to("greedy_tokens", shape, seen.num_token_faults, 0, calls, f"of {seen.num_tokens} tokens")
    yield held_to("finite_logits", shape, seen.num_nonfinite, 0, calls)
    if bench.service.mode.transform == "none":
        yield held_to("bit_identical_to_eager", shape, seen.num_unequal, 0, calls, "the same kernels on the same inputs")


PROBE = Probe(
    name="teacher_forced",
    hazards=("stale input (CUDA graphs notes)", "cache entry lost or misplaced", "numerical difference"),
    about="logits and greedy tokens at every planned shape against a reference in higher precision, beside eager's",
    run=_run,
)
