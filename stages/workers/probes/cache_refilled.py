"""The cache cleared, and filled again."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from stages.workers.probes.bench import Bench, admit, answer, clear, difference, forced_decode, random_tokens
from stages.workers.probes.probe import Document, Probe, held_to
from stages.workers.service import Service


def _run(bench: Bench) -> Iterator[Document]:
    rows, service = bench.sizes[-1], bench.service
    before = answer(service, rows)
    clear(service)
    yield held_to("cache_refilled", f"decode/{rows}", difference(answer(service, rows), before), bench.repeat_noise, 2)
    full, emptied = _step(service, rows, zeroed=False), _step(service, rows, zeroed=True)
    num_blind = int((full == emptied).all(dim=1).sum())
    yield held_to("cache_cleared", f"decode/{rows}", num_blind, 0, 2, "slots whose logits did not notice an emptied cache")


def _step(service: Service, rows: int, zeroed: bool) -> torch.Tensor:
    """One decode step [rows, v] after prompts, their keys and values zeroed or not."""
    admit(service, rows, seed=5)
    for tensor in (*service.keys, *service.values) if zeroed else ():
        tensor.zero_()
    return forced_decode(service, random_tokens(service, rows, 5))


PROBE = Probe(
    name="cache_refilled",
    hazards=("a replay reads a cache of its own", "state left from the requests before"),
    about="the same answer after all slots were zeroed and filled again; and another one where a slot stays zeroed",
    run=_run,
)
