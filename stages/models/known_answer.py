"""A small trained decoder whose right answers are known: correctness of a mode is an exact match, not a tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stages.core.errors import UserError
from stages.core.protocols import Task
from stages.models.base import DecoderModel
from stages.models.dimensions import Dimensions
from stages.models.tasks import LONGEST_ANSWER, VOCAB_SIZE, Recall, Reverse, Shifted

if TYPE_CHECKING:
    import torch

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
ADAPTERS = WEIGHTS.with_name("known_answer_adapters.safetensors")
# whole commands: a module's bare name would count as one that the stages run, and the recipe measures nothing
WEIGHTS_RECIPE = "python -m stages.models.training"
ADAPTERS_RECIPE = "python -m stages.models.training_adapters"
ADAPTER_RANK = 8
SHIFTED = tuple(Shifted(f"shift_{shift}", shift) for shift in (1, 5, 9))
"""One trained adapter each."""
LONGEST_PROMPT = Recall().longest_list + 3


@dataclass
class KnownAnswer(DecoderModel):
    """Trained on recall and reverse by `stages.models.training`; its sizes are fixed by the weights.

    With `adapter_rank: 8` also on three shifts, one LoRA adapter each, by `stages.models.training_adapters`.
    """

    def __post_init__(self) -> None:
        """Raises UserError also where a task does not fit the cache or the longest prepared prompt, or adapters do not fit."""
        super().__post_init__()
        if (self.adapter_rank, self.adapter_scale) not in ((0, 1.0), (ADAPTER_RANK, 1.0)):
            rule, got = f"must be 0, or {ADAPTER_RANK} with adapter_scale 1", f"{self.adapter_rank} and {self.adapter_scale}"
            raise UserError("model.adapter_rank", rule, got, "The adapters were trained so.")
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
        """The shipped weights, and adapters where there is room for them."""
        return [WEIGHTS, ADAPTERS] if self.adapter_rank else [WEIGHTS]

    def tasks(self) -> list[Task]:
        """Recall and reverse, and one shift an adapter."""
        return [Recall(), Reverse(), *(SHIFTED if self.adapter_rank else ())]

    def adapters(self) -> dict[str, dict[str, torch.Tensor]]:
        """The shipped adapters by task, float32 on the host. Raises UserError for a missing or broken file."""
        if not self.adapter_rank:
            return {}
        found: dict[str, dict[str, torch.Tensor]] = {task.name: {} for task in SHIFTED}
        for key, value in _loaded(ADAPTERS, "cpu", ADAPTERS_RECIPE).items():
            task, _, name = key.partition("/")
            found[task][name] = value
        return found

    def fill(self, decoder: LlamaDecoder, device: str) -> None:
        """Copy the shipped float32 weights. Raises UserError for a missing or broken file."""
        weights = _loaded(WEIGHTS, device, WEIGHTS_RECIPE)
        try:
            decoder.load_state_dict(weights)
        except RuntimeError as error:
            raise _broken(WEIGHTS, error, WEIGHTS_RECIPE) from error


def _loaded(file: Path, device: str, recipe: str) -> dict[str, torch.Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(file, device=device)
    except (SafetensorError, OSError) as error:
        raise _broken(file, error, recipe) from error


def _broken(file: Path, error: Exception, recipe: str) -> UserError:
    remedy = f"Restore the file, or train it again: {recipe}."
    return UserError("model", "needs its weights file", f"{file.name} ({error})", remedy)
