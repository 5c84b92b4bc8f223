"""An output that the caller writes into, as a sampler does that masks logits in place."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from stages.workers.probes.bench import Bench, admit, difference, random_tokens
from stages.workers.probes.probe import Document, Probe, held_to
from stages.workers.service import Service

NUM_STEPS = 3


def _run(bench: Bench) -> Iterator[Document]:
    for rows in dict.fromkeys((bench.sizes[0], bench.sizes[-1])):
        before, seen = (_steps(bench.service, rows, writes) for writes in (False, True))
        yield held_to("written_output", f"decode/{rows}", difference(seen, before), bench.repeat_noise, NUM_STEPS)


def _steps(service: Service, rows: int, writes: bool) -> torch.Tensor:
    """Logits [steps rows, v], copied; each output filled with NaN afterwards or not."""
    admit(service, rows, seed=rows)
    seen = []
    for step in range(NUM_STEPS):
        service.tokens[:rows].copy_(random_tokens(service, rows, step))
        logits = service.decode(rows)[0]
        seen.append(logits[:rows].clone())
        if writes:
            logits.fill_(float("nan"))
    return torch.cat(seen)


PROBE = Probe(
    name="written_output",
    hazards=("an output written in place is read by the next replay (pytorch#192748)",),
    about="fills the logits of each step with NaN once they are read; the next steps give the same answer, bit for bit",
    run=_run,
)
