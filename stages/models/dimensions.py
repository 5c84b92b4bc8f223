"""The numbers that define a Llama-style decoder, and what follows from them by counting. No torch here."""

from __future__ import annotations

from dataclasses import dataclass

from stages.core.bounds import check_most
from stages.core.errors import UserError

ATTENTIONS = ("sdpa", "split_kv")
"""Decode attention: torch's over the whole slot under a mask; our kernels over what the slot holds."""
NORMS = ("torch", "written_out")
"""RMSNorm: torch's operator; the formula as the published Llama code has it."""


@dataclass  # not frozen: OmegaConf makes such nodes read-only
class RopeScaling:
    """Llama 3's frequency scaling: wavelengths above `original_context` / `low_freq_factor` are stretched by `factor`.

    Source: transformers, `modeling_rope_utils.py`, rope type `llama3`.
    """

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_context: int

    def __post_init__(self) -> None:
        """Raises UserError where the blend between the two factors would be empty or negative."""
        if not 0 < self.low_freq_factor < self.high_freq_factor or self.factor <= 0 or self.original_context < 1:
            rule = "needs factor > 0, 0 < low_freq_factor < high_freq_factor, original_context >= 1"
            raise UserError("model.rope_scaling", rule, repr(self), "Llama 3.2 has 32, 1, 4, 8192.")


@dataclass(frozen=True)
class Dimensions:
    """Sizes of one decoder: `num_heads` query heads share `num_kv_heads` key/value heads of `head_size` each."""

    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_size: int
    ffn_size: int
    vocab_size: int
    rope_theta: float
    rope_scaling: RopeScaling | None
    tied: bool

    def __post_init__(self) -> None:
        """Raises UserError for a size below 1, heads that do not fill the hidden size or do not divide, an odd head."""
        for key in ("hidden_size", "num_layers", "num_heads", "num_kv_heads", "head_size", "ffn_size", "vocab_size", "rope_theta"):
            value = getattr(self, key)
            if not value > 0:
                raise UserError(f"model.{key}", "must be positive", value, "Give a size of 1 or more.")
            check_most(f"model.{key}", value)
        if self.num_heads * self.head_size != self.hidden_size:
            got = f"{self.num_heads} * {self.head_size} and {self.hidden_size}"
            raise UserError("model.head_size", "num_heads * head_size must equal hidden_size", got, "Change one of the three.")
        if self.num_heads % self.num_kv_heads:
            got = f"{self.num_heads} and {self.num_kv_heads}"
            raise UserError("model.num_kv_heads", "must divide num_heads", got, "Every key/value head serves equally many.")
        if self.head_size % 2:
            raise UserError("model.head_size", "must be even (RoPE turns pairs)", self.head_size, "Take 32 or 64.")

    @property
    def layer_weights(self) -> int:
        """Elements of one layer's matrices: qkv, output, gate, up, down."""
        attention = self.hidden_size * self.head_size * 2 * (self.num_heads + self.num_kv_heads)
        return attention + 3 * self.hidden_size * self.ffn_size

    @property
    def step_weights(self) -> int:
        """Elements that one decode step multiplies with: all layers, and the head once."""
        return self.num_layers * self.layer_weights + self.vocab_size * self.hidden_size

    @property
    def norm_weights(self) -> int:
        """Elements of all norms: two a layer, one before the head."""
        return (2 * self.num_layers + 1) * self.hidden_size

    def adapter_weights(self, rank: int) -> int:
        """Elements of a LoRA adapter of that rank on all layers' fused matrices: qkv, output, gate and up, down."""
        qkv = self.head_size * (self.num_heads + 2 * self.num_kv_heads)
        ends = (self.hidden_size + qkv) + 2 * self.hidden_size + (self.hidden_size + 2 * self.ffn_size) + (self.ffn_size + self.hidden_size)
        return self.num_layers * rank * ends

    def kv_elements(self, tokens: int) -> int:
        """Elements of keys and values over all layers for that many cached tokens."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_size * tokens
