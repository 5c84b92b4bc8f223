"""A small trained decoder whose right answers are known: correctness of a mode is an exact match, not a tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stages.core.errors import UserError
from stages.core.protocols import Task
from stages.models.base import DecoderModel
from stages.models.dimensions import Dimensions
from stages.models.tasks import LONGEST_ANSWER, VOCAB_SIZE, Recall, Reverse

if TYPE_CHECKING:
    from stages.models.decoder import LlamaDecoder

DIMENSIONS = Dimensions(
    hidden_size=96,
    num_layers=2,
    num_heads=3,
    num_kv_heads=3,
    head_size=32,
    ffn_size=192,
    vocab_size=VOCAB_SIZE,
    rope_theta=10_000.0,
    rope_scaling=None,
    tied=True,
)
WEIGHTS = Path(__file__).parent / "weights" / "known_answer.safetensors"
LONGEST_PROMPT = Recall().longest_list + 3
REMEDY = "Restore the file, or train it again: python -m stages.models.training."


@dataclass
class KnownAnswer(DecoderModel):
    """Trained on recall and reverse by `stages.models.training`; its sizes are fixed by the weights."""

    def __post_init__(self) -> None:
        """Raises UserError also where a task does not fit the cache or the longest prepared prompt."""
        super().__post_init__()
        if self.prompt_sizes[-1] < LONGEST_PROMPT:
            rule = f"must reach the longest task prompt, {LONGEST_PROMPT} tokens"
            raise UserError("model.prompt_sizes", rule, self.prompt_sizes, "Add a larger size.")
        if self.context_tokens < LONGEST_PROMPT + LONGEST_ANSWER:
            rule = f"must hold the longest task, {LONGEST_PROMPT + LONGEST_ANSWER} tokens"
            raise UserError("model.context_tokens", rule, self.context_tokens, "Give a longer context.")

    def dimensions(self) -> Dimensions:
        """Those that the weights were trained with."""
        return DIMENSIONS

    def files(self) -> list[Path]:
        """The shipped weights."""
        return [WEIGHTS]

    def tasks(self) -> list[Task]:
        """Recall and reverse."""
        return [Recall(), Reverse()]

    def fill(self, decoder: LlamaDecoder, device: str) -> None:
        """Copy the shipped float32 weights. Raises UserError for a missing or broken file."""
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            decoder.load_state_dict(load_file(WEIGHTS, device=device))
        except (SafetensorError, OSError, RuntimeError) as error:
            raise UserError("model", "needs its weights file", f"{WEIGHTS.name} ({error})", REMEDY) from error
