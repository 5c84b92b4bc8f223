"""A decoder in slots, run by one mode: static buffers, one callable a planned shape, admission and compaction.

Slots 0..n-1 are active. A decode step runs at the smallest planned size that holds n; rows beyond n are padding.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any

import torch

from stages.core.protocols import Decoder, Mode, Model
from stages.core.records.plan import Plan
from stages.instruments.row_copies import RowCopies

Outputs = tuple[torch.Tensor, torch.Tensor]


class Service:
    """One module, one mode, one cache. `steps[shape]` (`decode/8`, `prefill/512`) is a whole step on static inputs."""

    def __init__(self, module: Decoder, model: Model, mode: Mode, plan: Plan, device: str, precision: str) -> None:
        """Allocate buffers and transform the two functions; nothing is compiled or captured yet."""
        self.module, self.model, self.mode, self.plan, self.device = module, model, mode, plan, device
        self.keys, self.values = model.new_cache(device, precision)
        self.tokens = torch.zeros(model.max_batch, dtype=torch.int64, device=device)
        self.positions = torch.zeros_like(self.tokens)
        self.length = torch.ones(1, dtype=torch.int64, device=device)
        self.slot = torch.zeros(1, dtype=torch.int64, device=device)
        self.prompts = {size: torch.zeros(1, size, dtype=torch.int64, device=device) for size in plan.prompt_sizes}
        self.host_tokens = torch.zeros(model.max_batch, dtype=torch.int64, pin_memory=device == "cuda")
        self._moved = [RowCopies([*self.keys, *self.values]), RowCopies([self.tokens, self.positions])]
        self.rows = {size: (self.tokens[:size], self.positions[:size]) for size in plan.capture_sizes}
        num_shapes = len(plan.prompt_sizes) + len(plan.capture_sizes)
        self._decode = mode.transformed(module.decode, num_shapes)
        self._prefill = mode.transformed(module.prefill, num_shapes)
        self.pool = torch.cuda.graph_pool_handle() if device == "cuda" else None
        self.instruments: dict[str, Any] = {}
        self.draw = 0  # which of many draws of prompts and tokens this service gets
        self.steps: dict[str, Callable[[], Outputs]] = {shape: self.call(shape) for shape in self.shapes()}

    def shapes(self) -> list[str]:
        """Planned shapes, largest first: captures of smaller ones reuse the memory of larger ones."""
        prefill = [f"prefill/{size}" for size in reversed(self.plan.prompt_sizes)]
        return prefill + [f"decode/{size}" for size in reversed(self.plan.capture_sizes)]

    def static_tensors(self) -> list[torch.Tensor]:
        """Every tensor whose address a CUDA graph may hold."""
        rows = [tensor for pair in self.rows.values() for tensor in pair]
        return [*self.keys, *self.values, self.tokens, self.positions, self.length, self.slot, *self.prompts.values(), *rows]

    def call(self, shape: str) -> Callable[[], Outputs]:
        """One step at one shape on the static inputs, transformed but not held by a capture."""
        phase, _, size = shape.partition("/")
        if phase == "decode":
            tokens, positions = self.rows[int(size)]
            return lambda: self._decode(tokens, positions, self.keys, self.values)
        prompt = self.prompts[int(size)]
        return lambda: self._prefill_on(prompt)

    def step_on(self, tokens: torch.Tensor, positions: torch.Tensor) -> Outputs:
        """A decode step on the caller's tokens and positions [b]: transformed, not held by a capture."""
        self.mode.before_step()
        return self._decode(tokens, positions, self.keys, self.values)  # type: ignore[no-any-return]

    def _prefill_on(self, prompt: torch.Tensor) -> Outputs:
        """A prompt [1, n] into the slot and of the length that the buffers hold: transformed, not held by a capture."""
        return self._prefill(prompt, self.length, self.slot, self.tokens, self.positions, self.keys, self.values)  # type: ignore[no-any-return]

    def hold(self, shape: str) -> None:
        """Let the mode capture a warmed-up shape, if it captures."""
        self.steps[shape] = self.mode.held(self.call(shape), self.pool)

    def adopt_functions(self, other: Service) -> None:
        """Take over the two transformed functions of another service; steps that exist already keep theirs."""
        self._decode, self._prefill = other._decode, other._prefill

    def run(self, shape: str) -> Outputs:
        """One step: logits and next tokens. With Trees they are valid until the next step."""
        self.mode.before_step()
        return self.steps[shape]()

    def decode(self, num_active: int) -> Outputs:
        """One token for slots 0..num_active-1."""
        return self.run(self.decode_shape(num_active))

    def prefill(self, slot: int, prompt: torch.Tensor) -> Outputs:
        """One prompt [n] (device tensor) into a slot."""
        shape = self.prefill_shape(len(prompt))
        buffer = self.prompts[int(shape.partition("/")[2])]
        buffer[0, : len(prompt)].copy_(prompt)
        self.length.fill_(len(prompt))
        self.slot.fill_(slot)
        return self.run(shape)

    def decode_shape(self, num_active: int) -> str:
        """The planned shape that holds `num_active` sequences."""
        return f"decode/{_padded(num_active, self.plan.capture_sizes)}"

    def prefill_shape(self, prompt_tokens: int) -> str:
        """The planned shape that holds a prompt."""
        return f"prefill/{_padded(prompt_tokens, self.plan.prompt_sizes)}"

    def compact(self, moves: Sequence[tuple[int, int]]) -> None:
        """Move slots (source, target), in order: cache rows, token, position."""
        for source, target in moves:
            for rows in self._moved:
                rows.copy(source, target)

    def send_tokens(self, num_active: int) -> None:
        """Let the next tokens follow the step to the host; they are there once the device is waited for."""
        self.host_tokens[:num_active].copy_(self.tokens[:num_active], non_blocking=True)

    def sent_tokens(self, num_active: int) -> list[int]:
        """The tokens that were sent, after `synchronize`."""
        return list(self.host_tokens[:num_active].tolist())

    def read_tokens(self, num_active: int) -> list[int]:
        """The next tokens on the host: the synchronisation point of a serving loop."""
        self.send_tokens(num_active)
        self.synchronize()
        return self.sent_tokens(num_active)

    def fill(self, context_tokens: int, generator: torch.Generator) -> None:
        """Every slot at position `context_tokens` with random tokens, prompts of the smallest size; the cache keeps what it holds."""
        self.tokens.copy_(torch.randint(self.model.vocabulary(), self.tokens.shape, generator=generator))
        self.positions.fill_(context_tokens)
        self.length.fill_(self.plan.prompt_sizes[0])
        self.slot.fill_(0)

    def num_baseline_calls(self) -> int:
        """Steps until now that the mode gave to the baseline path, since it does not support their shape."""
        return int(self.mode.counts().get("unsupported_call", 0))

    def synchronize(self) -> None:
        """Wait for the device."""
        if self.device == "cuda":
            torch.cuda.synchronize()


def generator_of(service: Service, seed: int) -> torch.Generator:
    """A generator on the host for one use, named by its seed, in this service's draw."""
    return torch.Generator().manual_seed(seed + 1_000_003 * service.draw)


def random_prompts(service: Service, lengths: Sequence[int], seed: int) -> list[torch.Tensor]:
    """Seeded prompts on the device, one a length, drawn below the vocabulary's size."""
    generator = generator_of(service, seed)
    return [torch.randint(service.model.vocabulary(), (length,), generator=generator).to(service.device) for length in lengths]


def _padded(size: int, sizes: list[int]) -> int:
    index = bisect_left(sizes, size)
    assert index < len(sizes), f"size {size} is above the largest planned size {sizes[-1]}"
    return sizes[index]
