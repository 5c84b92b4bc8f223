"""Greedy generation, each service on its own tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch

from stages.workers.probes.bench import LONGEST_GENERATION, TIE, Bench, admit, prompt_lengths
from stages.workers.probes.probe import Document, Probe, held_to
from stages.workers.service import Service

SEED = 11


class Parting(NamedTuple):
    """The first step at which a row's token differs from eager's, and how close eager's two best logits were there."""

    step: int
    margin: float
    noise: float


def _run(bench: Bench) -> Iterator[Document]:
    rows = bench.sizes[-1]
    steps = min(LONGEST_GENERATION, bench.service.plan.context_tokens - max(prompt_lengths(bench.service, rows)))
    logits = _generate(bench.eager, rows, steps)
    exact = _generate(bench.reference, rows, steps, forced=logits.argmax(dim=-1))
    chosen = _generate(bench.service, rows, steps).argmax(dim=-1)
    partings = [found for row in range(rows) if (found := _parting(logits[:, row], exact[:, row], chosen[:, row]))]
    faults = [found for found in partings if found.margin > TIE * found.noise]
    reason = f"of {rows} rows over {steps} tokens; {_described(partings, faults)}"
    yield held_to("free_running_tokens", f"decode/{rows}", len(faults), 0, steps, reason)


def _generate(service: Service, rows: int, steps: int, forced: torch.Tensor | None = None) -> torch.Tensor:
    """Logits [steps, rows, v] of a greedy run, or of a run along `forced` tokens [steps, rows]."""
    seen = [torch.cat(admit(service, rows, SEED))]
    for step in range(1, steps):
        if forced is not None:
            service.tokens[:rows].copy_(forced[step - 1])
        seen.append(service.decode(rows)[0][:rows].clone())
    return torch.stack(seen)


def _parting(eager: torch.Tensor, exact: torch.Tensor, chosen: torch.Tensor) -> Parting | None:
    """Compare one row's tokens [steps] with eager's logits [steps, v]; until they part both had the same history."""
    differs = (eager.argmax(dim=-1) != chosen).nonzero()
    if not len(differs):
        return None
    step = int(differs[0])
    best, second = eager[step].double().topk(2).values.tolist()
    noise = float((eager[step].double() - exact[step].double()).abs().max())
    return Parting(step, best - second, noise)


def _described(partings: list[Parting], faults: list[Parting]) -> str:
    if not partings:
        return "all equal eager's"
    first = min(faults or partings)
    kind = "a fault" if faults else "a tie"
    return f"{len(partings)} differ, first at token {first.step}: {kind}, margin {first.margin:.3g}, eager's noise {first.noise:.3g}"


PROBE = Probe(
    name="free_running",
    hazards=("greedy text differs from eager's (vllm#14722, #19403)",),
    about="greedy tokens of a full batch; where they first differ from eager's, its two best logits must be as close as its noise",
    run=_run,
)
