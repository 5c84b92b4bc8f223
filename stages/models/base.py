"""What every built-in decoder model shares: serving sizes, the cache, byte and operation counts. No torch on import."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from stages.core.bounds import check_most
from stages.core.errors import UserError
from stages.core.protocols import Task
from stages.models.dimensions import ATTENTIONS, NORMS, Dimensions

if TYPE_CHECKING:
    import torch

    from stages.models.decoder import LlamaDecoder

ELEMENT_BYTES = {"fp64": 8, "fp32": 4, "bf16": 2, "fp16": 2}


@dataclass
class DecoderModel(ABC):
    """A decoder with a static cache of `max_batch` slots, `context_tokens` long each.

    `capture_sizes`: batch sizes prepared for decode; `prompt_sizes`: padded prompt lengths prepared for prefill.
    `attention` (of decode) and `norms` name operators, the same in every mode (`stages.models.attention`,
    `stages.models.norms`). `adapter_rank` above 0 gives every layer's matrices room for a LoRA adapter of that rank,
    which `adapter_scale` multiplies (`stages.models.adapters`).
    """

    name: str
    context_tokens: int
    max_batch: int
    capture_sizes: list[int]
    prompt_sizes: list[int]
    attention: str = field(default="sdpa", kw_only=True)
    norms: str = field(default="torch", kw_only=True)
    adapter_rank: int = field(default=0, kw_only=True)
    adapter_scale: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        """Raises UserError for sizes that are not ascending from 1 or do not fit the cache, or an unknown operator."""
        for key, known in (("attention", ATTENTIONS), ("norms", NORMS)):
            if getattr(self, key) not in known:
                raise UserError(f"model.{key}", f"must be one of {', '.join(known)}", getattr(self, key), "Take one of these.")
        if self.adapter_rank < 0:
            raise UserError("model.adapter_rank", "must be 0 (no adapters) or more", self.adapter_rank, "8 and 16 are usual.")
        for key in ("context_tokens", "max_batch"):
            if getattr(self, key) < 1:
                raise UserError(f"model.{key}", "must be 1 or more", getattr(self, key), "Give a positive whole number.")
        for key in ("context_tokens", "max_batch", "adapter_rank"):
            check_most(f"model.{key}", getattr(self, key))
        _check_ascending("model.capture_sizes", self.capture_sizes)
        _check_ascending("model.prompt_sizes", self.prompt_sizes)
        if self.capture_sizes[-1] != self.max_batch:
            remedy = f"End it with max_batch ({self.max_batch}), or change max_batch."
            raise UserError("model.capture_sizes", "must end with max_batch", self.capture_sizes, remedy)
        if self.prompt_sizes[-1] > self.context_tokens:
            remedy = f"No prompt is longer than context_tokens ({self.context_tokens})."
            raise UserError("model.prompt_sizes", "must fit context_tokens", self.prompt_sizes, remedy)
        self.dimensions()

    @abstractmethod
    def dimensions(self) -> Dimensions:
        """Sizes of the decoder. Raises UserError where they do not fit together."""

    @abstractmethod
    def fill(self, decoder: LlamaDecoder, device: str) -> None:
        """Write the weights, in place, on the device. Raises UserError where they cannot be read."""

    def load(self, device: str, precision: str) -> LlamaDecoder:
        """The decoder in eval mode, weights without gradients. Raises UserError for an unknown precision."""
        from stages.models.decoder import LlamaDecoder

        decoder = LlamaDecoder(
            self.dimensions(), self.context_tokens, device, _dtype(precision), self.attention, self.norms, self.adapter_rank
        )
        decoder.requires_grad_(False).eval()
        self.fill(decoder, device)
        return decoder

    def new_cache(self, device: str, precision: str) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Zeroed keys and values, each layer its own tensor [max_batch, kv_heads, context_tokens, head_size].

        Views of one tensor would be copied whole by functionalisation at every step.
        """
        import torch

        size = self.dimensions()
        shape = (self.max_batch, size.num_kv_heads, self.context_tokens, size.head_size)

        def zeros() -> list[torch.Tensor]:
            return [torch.zeros(shape, device=device, dtype=_dtype(precision)) for _ in range(size.num_layers)]

        return zeros(), zeros()

    def files(self) -> list[Path]:
        """No file: the weights come from a seed."""
        return []

    def tasks(self) -> list[Task]:
        """No task: weights that were not trained know no answers."""
        return []

    def adapters(self) -> dict[str, dict[str, torch.Tensor]]:
        """No adapter: none was trained."""
        return {}

    def vocabulary(self) -> int:
        """Number of token ids."""
        return self.dimensions().vocab_size

    def step_bytes(self, batch: int, context_tokens: int, precision: str) -> int:
        """Least bytes that a decode step reads: all weights and the head once, `context_tokens` of KV a sequence."""
        size = self.dimensions()
        weights = size.step_weights + size.norm_weights + size.adapter_weights(self.adapter_rank)
        elements = weights + size.kv_elements(batch * context_tokens)
        return elements * _element_bytes(precision)

    def step_operations(self, batch: int, context_tokens: int) -> int:
        """Floating-point operations of a decode step (a multiply-add is two): matrices, and attention over the context."""
        size = self.dimensions()
        attention = 4 * size.num_layers * size.num_heads * size.head_size * context_tokens
        return batch * (2 * (size.step_weights + size.adapter_weights(self.adapter_rank)) + attention)


def _check_ascending(key: str, sizes: list[int]) -> None:
    if not sizes or sizes[0] < 1 or any(low >= high for low, high in pairwise(sizes)):
        raise UserError(key, "must be a list of ascending positive sizes", sizes, "Sort it and drop duplicates.")


def _element_bytes(precision: str) -> int:
    if precision not in ELEMENT_BYTES:
        raise UserError("precision", f"must be one of {', '.join(ELEMENT_BYTES)}", precision, "Set it in params.yaml.")
    return ELEMENT_BYTES[precision]


def _dtype(precision: str) -> torch.dtype:
    import torch

    _element_bytes(precision)
    return {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
