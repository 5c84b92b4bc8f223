"""Whether a sequence's logits depend on who shares its batch, bit by bit."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from stages.workers.probes.bench import Bench, admit, forced_decode, random_tokens
from stages.workers.probes.probe import Document, Probe, not_run, reported
from stages.workers.service import Service

NUM_STEPS = 2


def _run(bench: Bench) -> Iterator[Document]:
    if len(bench.sizes) == 1:
        yield not_run("batch_invariance", "only one decode size is planned")
        return
    alone = _first_sequence(bench.service, bench.sizes[0])
    for rows in bench.sizes[1:]:
        shared = _first_sequence(bench.service, rows)
        share = float((shared != alone).float().mean())
        largest = float((shared.double() - alone.double()).abs().max())
        reason = f"share of logits that differ from decode/{bench.sizes[0]}; largest difference {largest:.3g}"
        yield reported("batch_invariance", f"decode/{rows}", share, NUM_STEPS, reason)


def _first_sequence(service: Service, rows: int) -> torch.Tensor:
    """Slot 0's logits [steps, v] in a batch of `rows`."""
    admit(service, rows, seed=7)
    tokens = [random_tokens(service, service.model.max_batch, 7 + step)[:rows] for step in range(NUM_STEPS)]
    return torch.stack([forced_decode(service, one)[0] for one in tokens])


PROBE = Probe(
    name="batch_invariance",
    hazards=("kernels chosen by batch size round differently",),
    about="the first sequence's logits in each batch size against the smallest, bit by bit; reported, not required",
    run=_run,
)
