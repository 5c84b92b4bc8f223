"""LoRA adapters as static buffers: switching one is a copy, so every captured graph and compiled kernel stays valid.

Source: Hu et al., LoRA (arXiv 2106.09685). The update is of the decoder's fused matrices: one pair a fused linear.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import skip_init

from stages.core.errors import UserError

Adapter = Mapping[str, Tensor]


class AdaptedLinear(nn.Linear):
    """[n, inputs] -> [n, outputs]: W x + `up` (`down` x), where `down` [rank, inputs] and `up` [outputs, rank]."""

    down: Tensor
    up: Tensor

    def __init__(self, inputs: int, outputs: int, rank: int, device: str, dtype: torch.dtype) -> None:
        """Without an adapter: both buffers are zero."""
        super().__init__(inputs, outputs, bias=False, device=device, dtype=dtype)
        self.register_buffer("down", torch.zeros(rank, inputs, device=device, dtype=dtype), persistent=False)
        self.register_buffer("up", torch.zeros(outputs, rank, device=device, dtype=dtype), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """The sum in the second product: two launches more than the layer alone."""
        return torch.addmm(F.linear(x, self.weight), F.linear(x, self.down), self.up.t())


def linear(inputs: int, outputs: int, rank: int, device: str, dtype: torch.dtype) -> nn.Linear:
    """A linear layer without bias, with room for an adapter where `rank` > 0; its weight is left uninitialised."""
    if rank:
        adapted: nn.Linear = skip_init(AdaptedLinear, inputs, outputs, rank, device=device, dtype=dtype)
        for buffer in adapted.buffers():
            buffer.zero_()
        return adapted
    plain: nn.Linear = skip_init(nn.Linear, inputs, outputs, bias=False, device=device, dtype=dtype)
    return plain


def adapter_buffers(module: nn.Module) -> dict[str, Tensor]:
    """Every adapter buffer of a decoder by name, such as `blocks.0.qkv.down`: what an adapter must give."""
    return {f"{name}.{part}": getattr(layer, part) for name, layer in _adapted(module) for part in ("down", "up")}


@torch.no_grad()
def switch_adapter(module: nn.Module, adapter: Mapping[str, Tensor] | None, scale: float = 1.0) -> None:
    """Copy an adapter into the buffers, `up` times `scale`; None switches off. Never allocates what a graph reads.

    Raises UserError, and changes nothing, where names or shapes are not those of `adapter_buffers`.
    """
    buffers = adapter_buffers(module)
    if adapter is None:
        for buffer in buffers.values():
            buffer.zero_()
        return
    _check(buffers, adapter)
    for name, buffer in buffers.items():
        buffer.copy_(adapter[name] * scale if name.endswith(".up") else adapter[name])


def random_adapter(module: nn.Module, seed: int) -> Adapter:
    """A seeded adapter whose update is as large as the weights that it changes."""
    draw = torch.Generator().manual_seed(seed)
    weights = dict(module.named_parameters())
    made = {}
    for name, buffer in adapter_buffers(module).items():
        layer, _, part = name.rpartition(".")
        weight = weights[f"{layer}.weight"]
        rank, inputs = buffer.shape if part == "down" else (buffer.shape[1], weight.shape[1])
        std = inputs**-0.5 if part == "down" else float(weight.float().square().mean().sqrt()) * (inputs / rank) ** 0.5
        made[name] = (torch.randn(buffer.shape, generator=draw) * std).to(buffer)
    return made


def _adapted(module: nn.Module) -> list[tuple[str, AdaptedLinear]]:
    return [(name, layer) for name, layer in module.named_modules() if isinstance(layer, AdaptedLinear)]


def _check(buffers: Mapping[str, Tensor], adapter: Mapping[str, Tensor]) -> None:
    if not buffers:
        raise UserError("model.adapter_rank", "must be above 0 for a model that takes adapters", 0, "Set it to the adapter's rank.")
    for name in sorted(buffers.keys() | adapter.keys()):
        expected = tuple(buffers[name].shape) if name in buffers else None
        got = tuple(adapter[name].shape) if name in adapter else None
        if got != expected:
            raise UserError("adapter", f"{name} must have shape {expected}", got, "Its rank and layers must be those of the model.")
