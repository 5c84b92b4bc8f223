"""Does the mode give the answers that eager gives? Checked on calls that are replays, with new inputs each time.

Three services share the weights: the mode, eager in the same precision, and a reference in higher precision (float64
for fp32, float32 for bf16). All are forced along the same tokens; the mode's error against the reference may be a
fixed multiple of eager's own (docs/methodology.md), so that a tolerance never has to be tuned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import torch

from stages.core.build import build
from stages.workers.service import Service, random_prompts

REFERENCE_PRECISION = {"fp32": "fp64", "bf16": "fp32"}
ERROR_MULTIPLE = {"fp32": 3.0, "bf16": 2.0}
ERROR_FLOOR = {"fp32": 1e-6, "bf16": 1e-3}
MIN_EXACT_MATCH = 0.99


@dataclass
class Comparison:
    """Sums over the calls of one shape; logits compared in float64 on the device."""

    num_calls: int = 0
    squared: dict[str, float] = field(default_factory=lambda: {"mode": 0.0, "eager": 0.0, "reference": 0.0})
    num_unequal: int = 0
    num_tokens: int = 0
    num_token_faults: int = 0
    num_nonfinite: int = 0

    def add(self, mode: torch.Tensor, eager: torch.Tensor, reference: torch.Tensor) -> None:
        """One call's logits [n, v] of the three services."""
        exact = reference.double()
        self.num_calls += 1
        self.num_unequal += int((mode != eager).sum())
        self.num_nonfinite += int((~torch.isfinite(mode)).sum())
        for name, logits in (("mode", mode), ("eager", eager)):
            self.squared[name] += float((logits.double() - exact).square().sum())
        self.squared["reference"] += float(exact.square().sum())
        self._add_tokens(mode, exact, float((eager.double() - exact).abs().max()))

    def error(self, name: str) -> float:
        """Relative root-mean-square error of `mode` or `eager` against the reference."""
        return float((self.squared[name] / max(self.squared["reference"], 1e-300)) ** 0.5)

    def _add_tokens(self, mode: torch.Tensor, exact: torch.Tensor, noise: float) -> None:
        """A greedy token may differ only where the reference's margin is within eager's own noise."""
        top = exact.topk(2, dim=-1)
        chosen = mode.argmax(dim=-1)
        given_up = top.values[:, 0] - exact.gather(1, chosen[:, None])[:, 0]
        self.num_tokens += len(chosen)
        self.num_token_faults += int((given_up > 4 * noise + 1e-12).sum())


def check(service: Service, precision: str, baseline: dict[str, Any], calls_per_shape: int, num_examples: int) -> list[dict[str, Any]]:
    """Every check of one mode, as `Check` documents."""
    eager = Service(service.module, service.model, build(baseline, "mode"), service.plan, service.device, precision)
    reference_precision = REFERENCE_PRECISION[precision]
    module = service.model.load(service.device, reference_precision)
    _copy_weights(service.module, module)
    reference = Service(module, service.model, build(baseline, "mode"), service.plan, service.device, reference_precision)
    trio = [service, eager, reference]
    checks = [
        document
        for shape in _visits(service)
        for document in _shape_checks(shape, _compare(trio, shape, calls_per_shape), service, precision)
    ]
    return checks + [_task_check(task, service, eager, num_examples) for task in service.model.tasks()]


def _copy_weights(source: Any, target: Any) -> None:
    """The reference runs on the same (rounded) weights."""
    for value, other in zip(source.parameters(), target.parameters(), strict=True):
        other.copy_(value)


def _visits(service: Service) -> list[str]:
    """Smallest, largest, smallest again, then the rest: a step must not depend on the shape before it."""
    sizes = [f"decode/{size}" for size in service.plan.capture_sizes]
    prefill = [f"prefill/{size}" for size in service.plan.prompt_sizes]
    return [*prefill, sizes[0], sizes[-1], *sizes[1:-1]]


def _compare(trio: list[Service], shape: str, num_calls: int) -> Comparison:
    phase, _, size = shape.partition("/")
    comparison = Comparison()
    if phase == "prefill":
        longest = min(int(size), trio[0].plan.context_tokens)
        lengths = [max(1, longest - index * longest // (2 * num_calls)) for index in range(num_calls)]
        for prompt in random_prompts(trio[0], lengths, seed=int(size)):
            comparison.add(*(service.prefill(0, prompt)[0].clone() for service in trio))
        return comparison
    rows = int(size)
    for slot, prompt in enumerate(random_prompts(trio[0], _prompt_lengths(trio[0], rows), seed=rows)):
        for service in trio:
            service.prefill(slot, prompt)
    generator = torch.Generator().manual_seed(rows)
    for _ in range(num_calls):
        forced = torch.randint(trio[0].model.vocabulary(), (rows,), generator=generator)
        comparison.add(*(_forced_decode(service, forced) for service in trio))
    return comparison


def _forced_decode(service: Service, forced: torch.Tensor) -> torch.Tensor:
    service.tokens[: len(forced)].copy_(forced)
    return service.decode(len(forced))[0].clone()


def _prompt_lengths(service: Service, rows: int) -> list[int]:
    smallest = service.plan.prompt_sizes[0]
    return [max(1, smallest - (3 * slot) % max(1, smallest // 2)) for slot in range(rows)]


def _shape_checks(shape: str, seen: Comparison, service: Service, precision: str) -> list[dict[str, Any]]:
    limit = ERROR_MULTIPLE[precision] * seen.error("eager") + ERROR_FLOOR[precision]
    checks = [
        _check("teacher_forced_logits", shape, seen.error("mode"), limit, seen.num_calls, f"eager's own error {seen.error('eager'):.3g}"),
        _check("greedy_tokens", shape, seen.num_token_faults, 0, seen.num_calls, f"of {seen.num_tokens} tokens"),
        _check("finite_logits", shape, seen.num_nonfinite, 0, seen.num_calls, ""),
    ]
    if service.mode.transform == "none":
        checks.append(_check("bit_identical_to_eager", shape, seen.num_unequal, 0, seen.num_calls, "the same kernels on the same inputs"))
    return checks


def _task_check(task: Any, service: Service, eager: Service, num_examples: int) -> dict[str, Any]:
    """Exact match of greedy answers, end token included; at least 99 %, or what eager itself reaches."""
    examples = task.examples(num_examples, seed=2_000_003)
    share, own = exact_match(service, examples), exact_match(eager, examples)
    limit = min(MIN_EXACT_MATCH, own)
    verdict = "pass" if share >= limit else "fail"
    return _document(f"task_{task.name}", task.name, verdict, share, limit, len(examples), f"eager {own:.4f}")


def exact_match(service: Service, examples: Any) -> float:
    """Share of examples whose whole greedy answer is right, decoded in full batches."""
    batch = service.model.max_batch
    right = sum(_answered(service, list(examples[start : start + batch])) for start in range(0, len(examples), batch))
    return right / len(examples)


def _answered(service: Service, examples: list[tuple[list[int], list[int]]]) -> int:
    for slot, (prompt, _) in enumerate(examples):
        service.prefill(slot, torch.tensor(prompt, device=service.device))
    answers = [[token] for token in service.read_tokens(len(examples))]
    for _ in range(max(len(answer) for _, answer in examples) - 1):
        service.decode(len(examples))
        for answer, token in zip(answers, service.read_tokens(len(examples)), strict=True):
            answer.append(token)
    return sum(answer[: len(truth)] == truth for answer, (_, truth) in zip(answers, examples, strict=True))


def _check(name: str, subject: str, value: float, limit: float, num_calls: int, reason: str) -> dict[str, Any]:
    return _document(name, subject, "pass" if value <= limit else "fail", value, limit, num_calls, reason)


def _document(name: str, subject: str, verdict: str, value: float, limit: float, num_calls: int, reason: str) -> dict[str, Any]:
    return {
        "name": name,
        "subject": subject,
        "verdict": verdict,
        "value": _finite(value),
        "limit": _finite(limit),
        "num_calls": num_calls,
        "reason": reason,
    }


def _finite(number: float) -> float | None:
    """Records are JSON, which has no NaN; the verdict says `fail` all the same."""
    return float(number) if math.isfinite(number) else None
