"""What all probes work on: the mode's service, eager and a reference in higher precision, on the same weights."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from stages.core.build import build
from stages.workers.probes.rounding import MOST_ROWS, NUM_TOKENS, Rounding, rounding
from stages.workers.service import Outputs, Service, generator_of, random_prompts

REFERENCE_PRECISION = {"fp32": "fp64", "bf16": "fp32"}
ERROR_MULTIPLE = {"fp32": 3.0, "bf16": 2.0}
ERROR_FLOOR = {"fp32": 1e-6, "bf16": 1e-3}
TIE = 4.0
"""Times eager's largest logit error at a step: a token no further below the best one is as good as it."""
STEPS_OF_AN_ANSWER = 2
STEPS_OF_A_HISTORY = 8
LONGEST_GENERATION = 16
NUM_LENGTHS = 8

Hook = Callable[[Service], None]


class Reference(Service):
    """Without padding: a prompt of any length is a shape of its own."""

    def prefill(self, slot: int, prompt: torch.Tensor) -> Outputs:
        """One prompt [n] (device tensor) into a slot."""
        self.length.fill_(len(prompt))
        self.slot.fill_(slot)
        return self._prefill_on(prompt[None])


@dataclass
class Bench:
    """Three services alive together, run one after the other on the same inputs.

    `rounding`: eager's errors over many tokens, known before any probe changes weights.
    `repeat_noise`: how far identical calls may differ before a probe calls it a difference; 0 unless the probe
    `repeated_calls` found a non-deterministic kernel (relative to the logits' root mean square).
    """

    service: Service
    eager: Service
    reference: Service
    precision: str
    calls_per_shape: int
    num_examples: int
    rounding: Rounding
    repeat_noise: float = field(default=0.0)

    @property
    def trio(self) -> tuple[Service, Service, Service]:
        """The mode, eager, the reference."""
        return self.service, self.eager, self.reference

    @property
    def sizes(self) -> list[int]:
        """Planned decode batches, ascending."""
        return self.service.plan.capture_sizes

    def error_limit(self, eager_error: float, num_tokens: int) -> float:
        """The relative error that the mode may have over so many tokens, from eager's own there and everywhere (docs/methodology.md)."""
        squared = max(eager_error**2, self.rounding.mean) * self.rounding.tail(num_tokens)
        return ERROR_MULTIPLE[self.precision] * math.sqrt(squared) + ERROR_FLOOR[self.precision]


def set_up(service: Service, precision: str, baseline: dict[str, Any], calls_per_shape: int, num_examples: int) -> Bench:
    """Eager on the mode's own module, and a module in higher precision with the same (rounded) weights."""
    eager = Service(uncompiled(service.module), service.model, build(baseline, "mode"), service.plan, service.device, precision)
    higher = REFERENCE_PRECISION[precision]
    module = service.model.load(service.device, higher)
    copy_weights(service.module, module)
    reference = Reference(module, service.model, build(baseline, "mode"), service.plan, service.device, higher)
    eager.draw = reference.draw = service.draw
    return Bench(service, eager, reference, precision, calls_per_shape, num_examples, _rounding(eager, reference))


def _rounding(eager: Service, reference: Service) -> Rounding:
    """Over seeded histories of `NUM_TOKENS` tokens or more."""
    rows = min(eager.plan.capture_sizes[-1], MOST_ROWS)
    seeds = range(500, 500 + math.ceil(NUM_TOKENS / rows / (1 + STEPS_OF_A_HISTORY)))
    return rounding(*(torch.cat([_history(service, rows, seed) for seed in seeds]) for service in (eager, reference)))


def uncompiled(module: Any) -> Any:
    """The module, or where a mode compiled layers in place a twin that runs them eagerly on the same weights and buffers."""
    if not any(getattr(layer, "_compiled_call_impl", None) for layer in module.modules()):
        return module
    return copy.deepcopy(module, {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())})


def copy_weights(source: Any, target: Any) -> None:
    """Every parameter of one module into the other, in the target's precision."""
    for value, other in zip(source.parameters(), target.parameters(), strict=True):
        other.copy_(value)


def prompt_lengths(service: Service, rows: int) -> list[int]:
    """From the longest prompt of the smallest planned size that leaves room to generate, to an eighth of it; rows differ."""
    longest = max(1, min(service.plan.prompt_sizes[0], service.plan.context_tokens - LONGEST_GENERATION))
    return [max(1, longest // (1 + slot % NUM_LENGTHS) - slot // NUM_LENGTHS) for slot in range(rows)]


def admit(service: Service, rows: int, seed: int, before: Hook | None = None) -> list[torch.Tensor]:
    """Seeded prompts into slots 0..rows-1; the logits [1, v] of each. `before` runs before each prompt."""
    logits = []
    for slot, prompt in enumerate(random_prompts(service, prompt_lengths(service, rows), seed)):
        if before:
            before(service)
        logits.append(service.prefill(slot, prompt)[0].clone())
    return logits


def forced_decode(service: Service, forced: torch.Tensor) -> torch.Tensor:
    """One decode step on these tokens [n], whatever the step before chose: logits [n, v], copied."""
    service.tokens[: len(forced)].copy_(forced)
    return service.decode(len(forced))[0][: len(forced)].clone()


def random_tokens(service: Service, rows: int, seed: int) -> torch.Tensor:
    """Seeded token ids [rows] on the host."""
    return torch.randint(service.model.vocabulary(), (rows,), generator=generator_of(service, seed))


def _history(service: Service, rows: int, seed: int) -> torch.Tensor:
    """Logits [n, v] of seeded prompts into slots 0..rows-1, then of decode steps on seeded tokens."""
    tokens = [random_tokens(service, rows, 100 * seed + step) for step in range(STEPS_OF_A_HISTORY)]
    return torch.cat([*admit(service, rows, seed), *(forced_decode(service, forced) for forced in tokens)])


def answer(service: Service, rows: int, before_prefill: Hook | None = None, before_decode: Hook | None = None) -> torch.Tensor:
    """A short history that always begins afresh: prompts into slots 0..rows-1, then two forced decode steps.

    Logits [3 rows, v]. They depend on the weights and `rows` alone: prompts and tokens come from seeds, and each cache
    entry is written before it is read. Hooks disturb the service in between.
    """
    logits = admit(service, rows, rows, before_prefill)
    for step in range(STEPS_OF_AN_ANSWER):
        if before_decode:
            before_decode(service)
        logits.append(forced_decode(service, random_tokens(service, rows, 1000 * rows + step)))
    return torch.cat(logits)


def clear(service: Service) -> None:
    """Empty slots, as at the start."""
    for tensor in (*service.keys, *service.values, service.tokens, service.positions):
        tensor.zero_()


def difference(one: torch.Tensor, other: torch.Tensor) -> float:
    """Largest absolute difference over the root mean square of `other`; infinite where either is no number."""
    distance = float((one.double() - other.double()).abs().max())
    scale = float(other.double().square().mean().sqrt())
    return distance / max(scale, 1e-300) if distance == distance and scale == scale else float("inf")


def relative_error(logits: torch.Tensor, exact: torch.Tensor) -> float:
    """Root of summed squared differences over summed squares."""
    return float(((logits.double() - exact.double()).square().sum() / exact.double().square().sum().clamp(min=1e-300)).sqrt())
