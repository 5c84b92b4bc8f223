"""Rotary positions: a query meets a key at an angle that depends on their distance alone.

Source: Su et al., RoFormer (arXiv 2104.09864), in Llama's half layout.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from stages.models.dimensions import Dimensions, RopeScaling


def rotate(heads: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each pair (i, i + d/2) of [n, heads, d] by its position's angle (Llama's half layout)."""
    first, second = heads.chunk(2, dim=-1)
    return heads * cos + torch.cat((-second, first), dim=-1) * sin


def rotary_tables(size: Dimensions, context_tokens: int, device: str) -> tuple[Tensor, Tensor]:
    """Cosine and sine [c, d] of every position, in float64."""
    exponents = torch.arange(0, size.head_size, 2, device=device, dtype=torch.float64) / size.head_size
    frequencies = size.rope_theta**-exponents
    if size.rope_scaling is not None:
        frequencies = stretched(frequencies, size.rope_scaling)
    angles = torch.arange(context_tokens, device=device, dtype=torch.float64)[:, None] * frequencies
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


def stretched(frequencies: Tensor, scaling: RopeScaling) -> Tensor:
    """Llama 3's scaling: long wavelengths divided by the factor, short ones kept, a blend between (`RopeScaling`)."""
    turns = scaling.original_context * frequencies / (2 * math.pi)
    kept = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    kept = kept.clamp(0, 1)
    return frequencies * (kept + (1 - kept) / scaling.factor)
