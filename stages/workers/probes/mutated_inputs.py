"""What a step writes into its inputs: exactly what eager writes, once."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from stages.workers.probes.bench import Bench, admit, clear, random_tokens
from stages.workers.probes.probe import Document, Probe, held_to
from stages.workers.service import Service


def _run(bench: Bench) -> Iterator[Document]:
    for rows in dict.fromkeys((bench.sizes[0], bench.sizes[-1])):
        mine, own = (_written(service, rows) for service in (bench.service, bench.eager))
        num_wrong = sum(int((seen != expected).sum()) for seen, expected in zip(mine, own, strict=True))
        yield held_to("mutated_inputs", f"decode/{rows}", num_wrong, 0, 2, "cache entries and positions written otherwise than by eager")


def _written(service: Service, rows: int) -> list[torch.Tensor]:
    """By prompts, then by a decode step: flags of the cache entries that changed [tensors, B, c], positions afterwards [B]."""
    clear(service)
    before = _cache(service)
    admit(service, rows, seed=rows)
    prompts = _cache(service)
    by_prompts = [_changed(prompts, before), service.positions.clone()]
    service.tokens[:rows].copy_(random_tokens(service, rows, 9))
    service.decode(rows)
    return [*by_prompts, _changed(_cache(service), prompts), service.positions.clone()]


def _cache(service: Service) -> list[torch.Tensor]:
    return [tensor.clone() for tensor in (*service.keys, *service.values)]


def _changed(after: list[torch.Tensor], before: list[torch.Tensor]) -> torch.Tensor:
    """One flag a tensor, slot and position; a head's numbers count together."""
    return torch.stack([(one != other).any(dim=3).any(dim=1) for one, other in zip(after, before, strict=True)])


PROBE = Probe(
    name="mutated_inputs",
    hazards=("inputs mutated by warm-up, or by each replay once more (CUDAGraph Trees notes)",),
    about="which cache entries prompts and a step write, and where positions stand after them: as eager, no more and no less",
    run=_run,
)
