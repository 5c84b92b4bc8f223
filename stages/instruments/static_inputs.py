"""Tensors whose address a CUDA graph may hold."""

from __future__ import annotations

from collections.abc import Iterable

import torch


def declare_static(tensors: Iterable[torch.Tensor]) -> None:
    """Tell Dynamo that these tensors keep their address.

    Without it CUDAGraph Trees refuses a graph that writes to its inputs ("skipping cudagraphs due to mutated inputs")
    and runs plain Inductor in silence. `torch._dynamo.mark_static_address`, private; torch 2.11 and 2.13.
    """
    for tensor in tensors:
        torch._dynamo.mark_static_address(tensor)
