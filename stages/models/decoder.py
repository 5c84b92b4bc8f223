"""The decoder that every built-in model runs: Llama's layers over a static KV cache in slots.

RMSNorm, rotary positions, grouped-query attention, SwiGLU. Both calls, `decode` and `prefill`, read and write only
buffers that the caller owns: a CUDA graph captured from one call is a whole step when it is replayed. Nothing here
waits for the host, makes a CPU tensor or depends on a value, so one function serves eager, compiled and replayed runs.

Shapes: b rows of a decode step (row i is slot i), p tokens of a padded prompt, n = b or p, B slots, h query heads,
g key/value heads, d head size, c context, v vocabulary. A layer's keys and values are [B, g, c, d].
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import skip_init

from stages.models.adapters import linear
from stages.models.attention import Step, attend_prompt, attend_slots, decode_attention, turned_heads
from stages.models.dimensions import Dimensions
from stages.models.norms import norm
from stages.models.rotary import rotary_tables

MAX_PART = 256


class Block(nn.Module):
    """One layer. Linears are fused where they read the same input: fewer kernels in every mode alike."""

    def __init__(self, size: Dimensions, norms: str, adapter_rank: int, device: str, dtype: torch.dtype) -> None:
        """Weights are left uninitialised: the model fills them."""
        super().__init__()
        self.num_kv_heads, self.head_size = size.num_kv_heads, size.head_size
        self.attention_norm = norm(norms, size.hidden_size, device, dtype)
        self.qkv = linear(size.hidden_size, (size.num_heads + 2 * size.num_kv_heads) * size.head_size, adapter_rank, device, dtype)
        self.output = linear(size.hidden_size, size.hidden_size, adapter_rank, device, dtype)
        self.ffn_norm = norm(norms, size.hidden_size, device, dtype)
        self.gate_up = linear(size.hidden_size, 2 * size.ffn_size, adapter_rank, device, dtype)
        self.down = linear(size.ffn_size, size.hidden_size, adapter_rank, device, dtype)

    def forward(self, x: Tensor, step: Step, keys: Tensor, values: Tensor) -> Tensor:
        """[n, hidden] -> [n, hidden]; writes the rows' keys and values at their slots and positions."""
        return self.combine(x, step.attend(self.heads(x), step, keys, values))

    def heads(self, x: Tensor) -> Tensor:
        """[n, hidden] -> [n, h + 2g, d]: queries, keys, values, not yet turned."""
        heads: Tensor = self.qkv(self.attention_norm(x)).unflatten(-1, (-1, self.head_size))
        return heads

    def project(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query [n, g, h/g, d], key and value [n, g, d], turned: what training attends with."""
        return turned_heads(self.heads(x), cos, sin, self.num_kv_heads)

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

    def __init__(
        self,
        size: Dimensions,
        context_tokens: int,
        device: str,
        dtype: torch.dtype,
        attention: str = "sdpa",
        norms: str = "torch",
        adapter_rank: int = 0,
    ) -> None:
        """Weights are left uninitialised: the model fills them. `context_tokens` is the length of a slot."""
        super().__init__()
        self.context_tokens = context_tokens
        self.attend = decode_attention(attention, device, dtype)
        self.embedding = skip_init(nn.Embedding, size.vocab_size, size.hidden_size, device=device, dtype=dtype)
        self.blocks = nn.ModuleList(Block(size, norms, adapter_rank, device, dtype) for _ in range(size.num_layers))
        self.norm = norm(norms, size.hidden_size, device, dtype)
        self.head = None if size.tied else linear(size.hidden_size, size.vocab_size, 0, device, dtype)
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
        visible = (self.steps <= positions[:, None])[:, None, None] if self.attend is attend_slots else None
        x = self.run_blocks(tokens, Step(*self.rotation(positions), slots, positions, visible, self.attend), keys, values)
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
        step = Step(*self.rotation(places), slot.expand(len(places)), places, None, attend_prompt)
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
        logits = F.linear(self.norm(x), (self.embedding if self.head is None else self.head).weight)
        return logits, greedy(logits)


def greedy(logits: Tensor) -> Tensor:
    """Index [n] of the largest of [n, v]: parts first, then the best of them; a long row as one reduction is slow on a GPU."""
    part = gcd(logits.shape[-1], MAX_PART)
    largest, places = logits.unflatten(-1, (-1, part)).max(dim=-1)
    best = largest.argmax(dim=-1, keepdim=True)
    found: Tensor = (places.gather(-1, best) + best * part).squeeze(-1)
    return found
