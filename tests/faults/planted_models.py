"""Models whose steps a capture or a compiler gets wrong, and healthy twins: copied to `stages/models/faulty.py` of a copied tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from stages.models.decoder import LlamaDecoder
from stages.models.random_llama import RandomLlama

Outputs = tuple[Tensor, Tensor]


@torch.library.custom_op("planted::doubled", mutates_args=())
def doubled(x: Tensor) -> Tensor:
    """Says that it writes nothing, and doubles its input in place."""
    x.mul_(2)
    return x.new_zeros(())


@doubled.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_zeros(())


@torch.library.custom_op("planted::doubled_openly", mutates_args={"x"})
def doubled_openly(x: Tensor) -> Tensor:
    """The same with the right schema."""
    x.mul_(2)
    return x.new_zeros(())


@doubled_openly.register_fake
def _(x: Tensor) -> Tensor:
    return x.new_zeros(())


class HidesMutation(LlamaDecoder):
    """A custom operator writes into what the step reads on, and the schema does not say so."""

    operator = staticmethod(doubled)

    def decode(self, tokens: Tensor, positions: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]) -> Outputs:
        logits, following = LlamaDecoder.decode(self, tokens, positions, keys, values)
        scaled = logits.sin()
        nothing = self.operator(scaled)
        return logits + scaled.cos() + nothing, following


class DeclaresMutation(HidesMutation):
    """The same with the right schema."""

    operator = staticmethod(doubled_openly)


class BranchesOnHost(LlamaDecoder):
    """Reads a token to choose its way, but not while a capture is under way: the capture keeps the last way."""

    way = True

    def decode(self, tokens: Tensor, positions: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]) -> Outputs:
        if not (tokens.is_cuda and torch.cuda.is_current_stream_capturing()):
            self.way = bool(tokens[0] % 2)
        logits, following = LlamaDecoder.decode(self, tokens, positions, keys, values)
        return (logits * 2 if self.way else logits), following


KINDS = {kind.__name__: kind for kind in (HidesMutation, DeclaresMutation, BranchesOnHost)}


@dataclass
class Faulty(RandomLlama):
    """A random model of one kind of decoder above."""

    kind: str = "DeclaresMutation"

    def load(self, device: str, precision: str) -> Any:
        decoder = super().load(device, precision)
        decoder.__class__ = KINDS[self.kind]
        return decoder
