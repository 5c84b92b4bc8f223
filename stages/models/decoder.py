"""The decoder that every built-in model runs: Llama's layers over a static KV cache in slots.

RMSNorm, rotary positions, grouped-query attention, SwiGLU. Both calls, `decode` and `prefill`, read and write only
buffers that the caller owns: a CUDA graph captured from one call is a whole step when it is replayed. Nothing here
waits for the host, makes a CPU tensor or depends on a value, so one function serves eager, compiled and replayed runs.

Shapes: b rows of a decode step (row i is slot i), p tokens of a padded prompt, n = b or p, B slots, h query heads,
g key/value heads, d head size, c context, v vocabulary. A layer's keys and values are [B, g, c, d].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import skip_init

from stages.models.dimensions import Dimensions
from stages.models.rotary import rotary_tables, rotate

NORM_EPSILON = 1e-5


class Step(NamedTuple):
    """What all layers of one call share: n rows' rotation, their places in the cache, what they may see."""

    cos: Tensor
    sin: Tensor
    slots: Tensor
    positions: Tensor
    visible: Tensor | None
    """[b, 1, 1, c] in decode; None in prefill, where a row sees the rows up to itself."""


class Block(nn.Module):
    """One layer. Linears are fused where they read the same input: fewer kernels in every mode alike."""

    def __init__(self, size: Dimensions, device: str, dtype: torch.dtype) -> None:
        """Weights are left uninitialised: the model fills them."""
        super().__init__()
        self.num_kv_heads, self.head_size = size.num_kv_heads, size.head_size
        self.num_turned = size.num_heads + size.num_kv_heads
        self.attention_norm = nn.RMSNorm(size.hidden_size, NORM_EPSILON, device=device, dtype=dtype)
        self.qkv = _linear(size.hidden_size, (self.num_turned + size.num_kv_heads) * size.head_size, device, dtype)
        self.output = _linear(size.hidden_size, size.hidden_size, device, dtype)
        self.ffn_norm = nn.RMSNorm(size.hidden_size, NORM_EPSILON, device=device, dtype=dtype)
        self.gate_up = _linear(size.hidden_size, 2 * size.ffn_size, device, dtype)
        self.down = _linear(size.ffn_size, size.hidden_size, device, dtype)

    def forward(self, x: Tensor, step: Step, keys: Tensor, values: Tensor) -> Tensor:
        """[n, hidden] -> [n, hidden]; writes the rows' keys and values at their slots and positions."""
        query, key, value = self.project(x, step.cos, step.sin)
        keys[step.slots, :, step.positions] = key
        values[step.slots, :, step.positions] = value
        if step.visible is None:
            mixed = attend_prompt(query, key, value)
        else:
            mixed = attend_cache(query, keys[: len(x)], values[: len(x)], step.visible)
        return self.combine(x, mixed)

    def project(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query [n, g, h/g, d] (grouped by the key head that serves it), key and value [n, g, d]."""
        heads = self.qkv(self.attention_norm(x)).unflatten(-1, (-1, self.head_size))
        turned, value = heads.split((self.num_turned, self.num_kv_heads), dim=1)
        query, key = rotate(turned, cos, sin).split((self.num_turned - self.num_kv_heads, self.num_kv_heads), dim=1)
        return query.unflatten(1, (self.num_kv_heads, -1)), key, value

    def combine(self, x: Tensor, mixed: Tensor) -> Tensor:
        """Add the attention's result [n, hidden] and then the feed-forward part to the residual."""
        x = x + self.output(mixed)
        gate, up = self.gate_up(self.ffn_norm(x)).chunk(2, dim=-1)
        result: Tensor = x + self.down(F.silu(gate) * up)
        return result


class LlamaDecoder(nn.Module):
    """`stages.core.protocols.Decoder`: prefill and decode over slots, in place on the caller's buffers."""

    cos: Tensor
    sin: Tensor
    steps: Tensor

    def __init__(self, size: Dimensions, context_tokens: int, device: str, dtype: torch.dtype) -> None:
        """Weights are left uninitialised: the model fills them. `context_tokens` is the length of a slot."""
        super().__init__()
        self.context_tokens = context_tokens
        self.embedding = skip_init(nn.Embedding, size.vocab_size, size.hidden_size, device=device, dtype=dtype)
        self.blocks = nn.ModuleList(Block(size, device, dtype) for _ in range(size.num_layers))
        self.norm = nn.RMSNorm(size.hidden_size, NORM_EPSILON, device=device, dtype=dtype)
        self.head = None if size.tied else _linear(size.hidden_size, size.vocab_size, device, dtype)
        cos, sin = rotary_tables(size, context_tokens, device)
        self.register_buffer("cos", cos.to(dtype), persistent=False)
        self.register_buffer("sin", sin.to(dtype), persistent=False)
        self.register_buffer("steps", torch.arange(context_tokens, device=device), persistent=False)

    def decode(self, tokens: Tensor, positions: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """One token for slots 0..b-1: tokens [b], positions [b] -> logits [b, v], next tokens [b].

        `tokens` becomes the next tokens and `positions` moves on by one (it stays at c - 1 at the end of a slot).
        A row reads its own slot up to its own position alone, so padding rows may hold any token and position.
        """
        slots = torch.arange(len(tokens), device=tokens.device)
        visible = (self.steps <= positions[:, None])[:, None, None]
        x = self.run_blocks(tokens, Step(*self.rotation(positions), slots, positions, visible), keys, values)
        logits, following = self.predict(x)
        tokens.copy_(following)
        positions.add_(1).clamp_(max=self.context_tokens - 1)
        return logits, following

    def prefill(
        self,
        prompt: Tensor,
        length: Tensor,
        slot: Tensor,
        tokens: Tensor,
        positions: Tensor,
        keys: Sequence[Tensor],
        values: Sequence[Tensor],
    ) -> tuple[Tensor, Tensor]:
        """One prompt [1, p] of real length [1] into slot [1] -> logits [1, v] of its last token, next token [1].

        Sets the slot's entries of `tokens` [B] and `positions` [B] for the decode that follows. Rows after the real
        length are computed and cached, but no real row sees them: decode overwrites each before it reads it.
        """
        places = self.steps[: prompt.shape[1]]
        step = Step(*self.rotation(places), slot.expand(len(places)), places, visible=None)
        x = self.run_blocks(prompt[0], step, keys, values)
        logits, following = self.predict(x.index_select(0, length - 1))
        tokens.index_copy_(0, slot, following)
        positions.index_copy_(0, slot, length.clamp(max=self.context_tokens - 1))
        return logits, following

    def run_blocks(self, tokens: Tensor, step: Step, keys: Sequence[Tensor], values: Sequence[Tensor]) -> Tensor:
        """Embed [n] tokens and run all layers: [n, hidden], not yet normed."""
        x: Tensor = self.embedding(tokens)
        for block, layer_keys, layer_values in zip(self.blocks, keys, values, strict=True):
            x = block(x, step, layer_keys, layer_values)
        return x

    def rotation(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosine and sine [n, 1, d] of positions [n]."""
        return self.cos[positions][:, None], self.sin[positions][:, None]

    def predict(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits [n, v] of [n, hidden], and the greedy choice [n]."""
        weight = self.embedding.weight if self.head is None else self.head.weight
        logits = F.linear(self.norm(x), weight)
        return logits, logits.argmax(dim=-1)


def attend_cache(query: Tensor, keys: Tensor, values: Tensor, visible: Tensor) -> Tensor:
    """Rows [b, g, h/g, d] over their slots [b, g, c, d]: [b, hidden].

    The queries of one key head stand where a sequence would: no copy of keys and values for each of them.
    """
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=visible).flatten(1)


def attend_prompt(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Causal attention of one prompt with itself: query [p, g, h/g, d], key and value [p, g, d] -> [p, hidden]."""
    query = query.permute(1, 2, 0, 3)
    keys = key.transpose(0, 1)[:, None].expand_as(query)  # stride 0, no copy
    values = value.transpose(0, 1)[:, None].expand_as(query)
    return F.scaled_dot_product_attention(query, keys, values, is_causal=True).permute(2, 0, 1, 3).flatten(1)


def _linear(inputs: int, outputs: int, device: str, dtype: torch.dtype) -> nn.Linear:
    linear: nn.Linear = skip_init(nn.Linear, inputs, outputs, bias=False, device=device, dtype=dtype)
    return linear
