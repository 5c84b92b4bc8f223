"""Adapter ids for the requests of a trace: how popular each adapter is follows S-LoRA's rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from stages.core.records.plan import Request
from stages.traces.chat import Chat
from stages.traces.checks import require_between


@dataclass
class ChatWithAdapters(Chat):
    """The synthetic chat, each request with one of `num_adapters` LoRA adapters.

    id = floor(U^(1/alpha) * num_adapters) with U uniform, which is `numpy.random.power(alpha)` as in S-LoRA's
    `benchmarks/trace.py`: 1 is uniform, below it the low ids are popular.
    """

    num_adapters: int = 8
    adapter_alpha: float = 0.3

    def __post_init__(self) -> None:
        """Raise UserError for a number out of range."""
        super().__post_init__()
        require_between("trace.num_adapters", self.num_adapters, 1, 100_000)
        require_between("trace.adapter_alpha", self.adapter_alpha, 1e-3, 1e3)

    def requests(self) -> list[Request]:
        """The chat's requests, with the same lengths and arrivals."""
        return with_adapters(super().requests(), self.num_adapters, self.adapter_alpha, self.seed)


def with_adapters(requests: Sequence[Request], num_adapters: int, alpha: float, seed: int) -> list[Request]:
    """The same requests, each with a seeded adapter id below `num_adapters`."""
    drawn = numpy.random.default_rng([seed, 3]).power(alpha, len(requests)) * num_adapters
    ids = numpy.minimum(drawn.astype(int), num_adapters - 1).tolist()
    return [request.model_copy(update={"adapter_id": adapter_id}) for request, adapter_id in zip(requests, ids, strict=True)]
