"""Models with one fault each, and their healthy twins; a test copies this file to stages/models/planted.py."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from stages.models.decoder import Block, LlamaDecoder
from stages.models.random_llama import RandomLlama

Outputs = tuple[Tensor, Tensor]


class Decoder(LlamaDecoder):
    """Decodes, then does what a subclass adds to the logits."""

    def decode(self, tokens: Tensor, positions: Tensor, keys: Sequence[Tensor], values: Sequence[Tensor]) -> Outputs:
        logits, following = LlamaDecoder.decode(self, tokens, positions, keys, values)
        return self.after(logits), following

    def after(self, logits: Tensor) -> Tensor:
        raise NotImplementedError


class Branches(Decoder):
    def after(self, logits: Tensor) -> Tensor:
        if logits.sum() > 0:  # planted: depends on data
            return logits * 2
        return logits


class Selects(Decoder):
    def after(self, logits: Tensor) -> Tensor:
        return torch.where(logits.sum() > 0, logits * 2, logits)


class ReadsItem(Decoder):
    def after(self, logits: Tensor) -> Tensor:
        self.largest = logits.abs().max().item()  # planted: waits for the host
        return logits / (1 + logits.abs().max())


class ReadsTensor(Decoder):
    def after(self, logits: Tensor) -> Tensor:
        return logits / (1 + logits.abs().max())


class Waits(Decoder):
    def after(self, logits: Tensor) -> Tensor:
        logits.abs().max().item()  # planted: waits for the host and drops what it read
        return logits * 2


class Scaled(Decoder):
    scale = 1.0

    def after(self, logits: Tensor) -> Tensor:
        return logits * self.scale


class Remembers(Decoder):
    """Keeps what it saw: state that starts as a tensor made outside the step."""

    def after(self, logits: Tensor) -> Tensor:
        if not hasattr(self, "seen"):
            self.seen = torch.zeros(1, logits.shape[1], device=logits.device)
        logits = logits + 1e-6 * self.seen[:1]
        self.seen = self.remembered(logits)
        return logits

    def remembered(self, logits: Tensor) -> Tensor:
        raise NotImplementedError


class Grows(Remembers):
    def remembered(self, logits: Tensor) -> Tensor:
        return torch.cat([self.seen, logits[:1]])  # planted: one row more each step


class Stays(Remembers):
    def remembered(self, logits: Tensor) -> Tensor:
        return logits[:1].clone()


class IndexedBlock(Block):
    """A layer that uses its own number."""

    index = 0

    def forward(self, x: Tensor, *arguments: Any) -> Tensor:
        return Block.forward(self, x, *arguments) * (1 + self.index * 1e-6)  # planted: a guard on each layer's number


class PlainBlock(Block):
    """The same without the number."""

    def forward(self, x: Tensor, *arguments: Any) -> Tensor:
        return Block.forward(self, x, *arguments) * (1 + 1e-6)


class Indexed(LlamaDecoder):
    block_class: type[Block] = IndexedBlock

    def prepare(self) -> None:
        for index, block in enumerate(self.blocks):
            block.__class__, block.index = self.block_class, index  # type: ignore[assignment]


class Unindexed(Indexed):
    block_class = PlainBlock


KINDS = {kind.__name__: kind for kind in (Branches, Selects, ReadsItem, ReadsTensor, Waits, Scaled, Grows, Stays, Indexed, Unindexed)}


@dataclass
class Planted(RandomLlama):
    """A random model of one kind of decoder above."""

    kind: str = "Selects"

    def load(self, device: str, precision: str) -> LlamaDecoder:
        decoder = super().load(device, precision)
        decoder.__class__ = KINDS[self.kind]
        if isinstance(decoder, Remembers):
            decoder.seen = torch.zeros(1, self.vocab_size, device=device)
        if isinstance(decoder, Indexed):
            decoder.prepare()
        return decoder
