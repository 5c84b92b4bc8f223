"""Attention of the decoder: every way takes what the fused projection gives, writes the cache, and attends.

Shapes as in `stages.models.decoder`. `heads` [n, h + 2g, d] are a row's queries, keys and values, not yet turned.
`ATTENTIONS` names what a model's key `attention` may be; the one chosen is the same in every mode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from stages.models.dimensions import ATTENTIONS
from stages.models.rotary import rotate


class Step(NamedTuple):
    """What all layers of one call share: n rows' rotation, their places in the cache, how they attend."""

    cos: Tensor
    sin: Tensor
    slots: Tensor
    positions: Tensor
    visible: Tensor | None
    """[b, 1, 1, c] where decode masks a whole slot, else None."""
    attend: Callable[[Tensor, Step, Tensor, Tensor], Tensor]


def decode_attention(name: str, device: str, dtype: torch.dtype) -> Callable[[Tensor, Step, Tensor, Tensor], Tensor]:
    """The decode attention that a model asks for, by what the device can run: a CPU and fp64 always take `sdpa`."""
    assert name in ATTENTIONS, f"{name} is not an attention"
    return attend_filled if name == "split_kv" and device == "cuda" and dtype != torch.float64 else attend_slots


def attend_slots(heads: Tensor, step: Step, keys: Tensor, values: Tensor) -> Tensor:
    """`sdpa`: rows [b, h + 2g, d] over their slots [b, g, c, d], read whole under a mask: [b, h * d].

    The queries of one key head stand where a sequence would: no copy of keys and values for each of them.
    """
    query, key, value = turned_heads(heads, step.cos, step.sin, keys.shape[1])
    store(key, value, step, keys, values)
    keys, values = keys[: len(heads)], values[: len(heads)]
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=step.visible).flatten(1)


def attend_filled(heads: Tensor, step: Step, keys: Tensor, values: Tensor) -> Tensor:
    """`split_kv`: the same, but a slot is read up to its row's position alone: [b, h * d]."""
    from stages.models import split_kv

    query, key, value = turned_heads(heads, step.cos, step.sin, keys.shape[1])
    store(key, value, step, keys, values)
    return split_kv.decode_attention(query, step.positions, keys, values)


def attend_prompt(heads: Tensor, step: Step, keys: Tensor, values: Tensor) -> Tensor:
    """Causal attention of one prompt [p, h + 2g, d] with itself: [p, h * d]."""
    query, key, value = turned_heads(heads, step.cos, step.sin, keys.shape[1])
    store(key, value, step, keys, values)
    query = query.permute(1, 2, 0, 3)
    keys = key.transpose(0, 1)[:, None].expand_as(query)  # stride 0, no copy
    values = value.transpose(0, 1)[:, None].expand_as(query)
    return F.scaled_dot_product_attention(query, keys, values, is_causal=True).permute(2, 0, 1, 3).flatten(1)


def turned_heads(heads: Tensor, cos: Tensor, sin: Tensor, num_kv_heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Query [n, g, h/g, d] (grouped by the key head that serves it), key and value [n, g, d]."""
    num_turned = heads.shape[1] - num_kv_heads
    turned, value = heads.split((num_turned, num_kv_heads), dim=1)
    query, key = rotate(turned, cos, sin).split((num_turned - num_kv_heads, num_kv_heads), dim=1)
    return query.unflatten(1, (num_kv_heads, -1)), key, value


def store(key: Tensor, value: Tensor, step: Step, keys: Tensor, values: Tensor) -> None:
    """Write keys and values [n, g, d] at the rows' slots and positions."""
    keys[step.slots, :, step.positions] = key
    values[step.slots, :, step.positions] = value
