"""The decoder's matrix products with what surrounds them: RMSNorm before, SwiGLU's gate or the residual after.

`torch`: one operator each, as everybody writes it. `fused`: up to 16 rows go through one kernel of ours that does
all of it while the weights stream past (`stages.models.fused_linear`); more rows, as in prefill, take `torch`.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from stages.models.dimensions import LINEARS

MAX_FUSED_ROWS = 16


def fuses(name: str, device: str, dtype: torch.dtype) -> bool:
    """Whether a model that asks for `name` gets the fused kernel here: on CUDA, in bf16 or fp16."""
    assert name in LINEARS, f"{name} is not a linear"
    return name == "fused" and device == "cuda" and dtype in (torch.bfloat16, torch.float16)


def normed(x: Tensor, norm: nn.RMSNorm, layer: nn.Linear | nn.Embedding, fused: bool) -> Tensor:
    """layer(norm(x)): [n, k] -> [n, m]. A tied head is an embedding, its weight the matrix."""
    if fused and len(x) <= MAX_FUSED_ROWS:
        return _fused(x, layer.weight, norm=norm)
    result: Tensor = F.linear(norm(x), layer.weight) if isinstance(layer, nn.Embedding) else layer(norm(x))
    return result


def gated(x: Tensor, norm: nn.RMSNorm, layer: nn.Linear, fused: bool) -> Tensor:
    """silu(gate) * up, where gate and up are the halves of layer(norm(x)): [n, k] -> [n, m / 2]."""
    if fused and len(x) <= MAX_FUSED_ROWS:
        return _fused(x, layer.weight, norm=norm, gate=True)
    gate, up = layer(norm(x)).chunk(2, dim=-1)
    result: Tensor = F.silu(gate) * up
    return result


def added(x: Tensor, layer: nn.Linear, residual: Tensor, fused: bool) -> Tensor:
    """residual + layer(x): [n, k] -> [n, m]."""
    if fused and len(x) <= MAX_FUSED_ROWS:
        return _fused(x, layer.weight, residual=residual)
    result: Tensor = residual + layer(x)
    return result


def _fused(x: Tensor, weight: Tensor, norm: nn.RMSNorm | None = None, residual: Tensor | None = None, gate: bool = False) -> Tensor:
    from stages.models import fused_linear

    scale, epsilon = (None, 0.0) if norm is None else (norm.weight, norm.eps)
    return fused_linear.product(x, weight, scale, epsilon or 0.0, residual, gate)
