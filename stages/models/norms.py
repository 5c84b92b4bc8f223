"""RMSNorm of the decoder (Zhang and Sennrich, arXiv 1910.07467), in the two ways that models in use write it.

`NORMS` names what a model's key `norms` may be; the one chosen is the same in every mode.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from stages.models.dimensions import NORMS

EPSILON = 1e-5


class WrittenOutRMSNorm(nn.RMSNorm):
    """From products, a mean and a root in float32 (float64 stays): seven kernels or more where nothing compiles it."""

    def forward(self, x: Tensor) -> Tensor:
        """[n, hidden] -> [n, hidden]. Source: `RMSNorm` in meta-llama/llama, `LlamaRMSNorm` in transformers."""
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        scaled = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + EPSILON)
        normed: Tensor = self.weight * scaled.to(x.dtype)
        return normed


def norm(name: str, hidden_size: int, device: str, dtype: torch.dtype) -> nn.RMSNorm:
    """The norm of that name, its weight at one: `torch` is torch's own operator, one kernel."""
    assert name in NORMS, f"{name} is not a norm"
    kind = WrittenOutRMSNorm if name == "written_out" else nn.RMSNorm
    return kind(hidden_size, EPSILON, device=device, dtype=dtype)
