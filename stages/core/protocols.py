"""What conf/ can name: a model, a mode, a trace. Each is a dataclass; torch is imported only inside methods."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from stages.core.records.plan import Request

if TYPE_CHECKING:
    import torch


class Trace(Protocol):
    """Request arrivals and lengths. Fields are its keys in conf/trace/."""

    name: str

    def files(self) -> list[Path]:
        """Files whose content counts as configuration (weights, a trace's rows); empty for most."""
        ...

    def requests(self) -> list[Request]:
        """Arrivals sorted from 0, unscaled lengths. Raises UserError for a broken file."""
        ...


class Decoder(Protocol):
    """The module that a model loads: both calls work in place on static buffers, so a replayed graph is a whole step.

    Shapes: b decode batch, p padded prompt, B slots, v vocabulary. `keys` / `values`: one [B, kv_heads, context,
    head_size] tensor a layer. int64 tokens, positions, length, slot. Nobody else moves `tokens` and `positions` on: a
    module that leaves them alone repeats its first step, and the probe `cache_cleared` fails, in eager too.
    """

    def decode(self, tokens: torch.Tensor, positions: torch.Tensor, keys: Any, values: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """One token for rows 0..b-1: tokens [b], positions [b] -> logits [b, v], next tokens [b].

        In place: `tokens` becomes the next tokens; `positions` moves on by one and stays at context - 1 at the end of a slot.
        """
        ...

    def prefill(
        self,
        prompt: torch.Tensor,
        length: torch.Tensor,
        slot: torch.Tensor,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        keys: Any,
        values: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """One prompt [1, p] of real length [1] into slot [1]: logits [1, v] of its last token, next token [1].

        In place: `tokens` [B] at the slot becomes the next token, `positions` [B] at the slot the length (context - 1 at most).
        """
        ...

    def parameters(self) -> Iterator[torch.nn.Parameter]:
        """As of any module."""
        ...

    def buffers(self) -> Iterator[torch.Tensor]:
        """As of any module."""
        ...


class Task(Protocol):
    """A task with known answers: prompts, and the tokens that must follow greedily (end token included)."""

    @property
    def name(self) -> str:
        """Its name in records."""
        ...

    def examples(self, count: int, seed: int) -> Sequence[tuple[list[int], list[int]]]:
        """`count` pairs of prompt and answer from a seed that training never used."""
        ...


class Model(Protocol):
    """A causal decoder with a static KV cache. Fields are its keys in conf/model/."""

    name: str
    context_tokens: int
    max_batch: int
    capture_sizes: list[int]
    prompt_sizes: list[int]

    def files(self) -> list[Path]:
        """Files whose content counts as configuration (weights, a trace's rows); empty for most."""
        ...

    def load(self, device: str, precision: str) -> Decoder:
        """The module, in eval mode, weights without gradients, on the device in that precision."""
        ...

    def new_cache(self, device: str, precision: str) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Zeroed keys and values, one tensor a layer each: [max_batch, kv_heads, context_tokens, head_size]."""
        ...

    def tasks(self) -> list[Task]:
        """Tasks with known answers; empty for random weights."""
        ...

    def adapters(self) -> Mapping[str, Mapping[str, torch.Tensor]]:
        """Trained LoRA adapters by the name of the task that they are for (`stages.models.adapters`); empty for most."""
        ...

    def vocabulary(self) -> int:
        """Number of token ids; prompts are drawn below it."""
        ...

    def step_bytes(self, batch: int, context_tokens: int, precision: str) -> int:
        """Bytes that one decode step must read at least: weights once, KV of every sequence."""
        ...

    def step_operations(self, batch: int, context_tokens: int) -> int:
        """Floating-point operations of one decode step."""
        ...


class Mode(Protocol):
    """An operating mode: a claim about two axes, and how to get there. Fields are its keys in conf/mode/."""

    name: str
    family: str
    transform: str
    replay: str
    documented_at: str
    stability: str
    configuration: str

    def files(self) -> list[Path]:
        """Files whose content counts as configuration (weights, a trace's rows); empty for most."""
        ...

    def unavailable(self, device: str) -> str:
        """Why this mode cannot run on a device type (`cpu`, `cuda`), or an empty string."""
        ...

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        """The function as this mode runs it, before any capture: itself, or torch.compile of it."""
        ...

    def held(self, call: Callable[[], Any], pool: Any) -> Callable[[], Any]:
        """A warmed-up call on static inputs, as this mode repeats it: itself, or the replay of its capture.

        `pool` is the worker's CUDA graph memory pool (None on a CPU).
        """
        ...

    def before_step(self) -> None:
        """Called before every step (CUDAGraph Trees mark a new generation here)."""
        ...

    def weights_changed(self) -> None:
        """Called after the module's weights were changed (a package with weights of its own loads them again here)."""
        ...

    def warmed_up(self) -> None:
        """Called once every planned shape has run: nothing may be built for further ones from now on."""
        ...

    def counts(self) -> Mapping[str, int]:
        """What this mode counts itself, where torch has no counter for it."""
        ...

    def artifact(self) -> bytes | None:
        """What this process compiled, to be carried to another one; None when there is nothing to carry."""
        ...

    def load_artifact(self, content: bytes) -> bool:
        """Let later compilations find what an artifact carries; False when it could not be read."""
        ...
