"""A published architecture with random weights: its speed is that of the trained model, its text means nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stages.core.errors import UserError
from stages.models.base import DecoderModel
from stages.models.dimensions import Dimensions, RopeScaling

if TYPE_CHECKING:
    from stages.models.decoder import LlamaDecoder

WEIGHT_STD = 0.02


@dataclass
class RandomLlama(DecoderModel):
    """Llama layers of any size; the same seed, device and precision give the same weights.

    `tied`: the head is the embedding. `rope_scaling`: Llama 3's, or nothing.
    """

    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_size: int
    ffn_size: int
    vocab_size: int
    rope_theta: float
    tied: bool
    seed: int
    rope_scaling: RopeScaling | None = None

    def __post_init__(self) -> None:
        """Raises UserError also for a seed that torch's generators do not take."""
        super().__post_init__()
        if not 0 <= self.seed < 2**63:
            raise UserError("model.seed", "must be from 0 to 2**63 - 1", self.seed, "Any small number does.")

    def dimensions(self) -> Dimensions:
        """The keys of the same names. Raises UserError where they do not fit together."""
        return Dimensions(
            hidden_size=self.hidden_size,
            num_layers=self.num_layers,
            num_heads=self.num_heads,
            num_kv_heads=self.num_kv_heads,
            head_size=self.head_size,
            ffn_size=self.ffn_size,
            vocab_size=self.vocab_size,
            rope_theta=self.rope_theta,
            rope_scaling=self.rope_scaling,
            tied=self.tied,
        )

    def fill(self, decoder: LlamaDecoder, device: str) -> None:
        """Matrices from a normal distribution of std 0.02, drawn on the device; norms stay at one."""
        import torch

        generator = torch.Generator(device).manual_seed(self.seed)
        for weight in decoder.parameters():
            if weight.dim() > 1:
                weight.normal_(std=WEIGHT_STD, generator=generator)
