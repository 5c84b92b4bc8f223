"""Greedy and sampled generation, each service on its own tokens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch

from stages.workers.probes.bench import LONGEST_GENERATION, TIE, Bench, admit, prompt_lengths
from stages.workers.probes.probe import Document, Probe, held_to
from stages.workers.service import Service, generator_of

SEED = 11


class Parting(NamedTuple):
    """The first step at which a row's token differs from eager's, and how close eager's two best scores were there."""

    step: int
    margin: float
    noise: float


def _run(bench: Bench) -> Iterator[Document]:
    rows = bench.sizes[-1]
    steps = min(LONGEST_GENERATION, bench.service.plan.context_tokens - max(prompt_lengths(bench.service, rows)))
    yield _compared(bench, "free_running_tokens", rows, steps, draws=False)
    yield _compared(bench, "sampled_tokens", rows, steps, draws=True)


def _compared(bench: Bench, name: str, rows: int, steps: int, draws: bool) -> Document:
    """The reference follows eager's tokens, to say how far eager's own scores are off."""
    scores = _generate(bench.eager, rows, steps, draws)
    exact = _generate(bench.reference, rows, steps, draws, forced=scores.argmax(dim=-1))
    chosen = _generate(bench.service, rows, steps, draws).argmax(dim=-1)
    partings = [found for row in range(rows) if (found := _parting(scores[:, row], exact[:, row], chosen[:, row]))]
    faults = [found for found in partings if found.margin > TIE * found.noise]
    reason = f"of {rows} rows over {steps} tokens; {_described(partings, faults)}"
    return held_to(name, f"decode/{rows}", len(faults), 0, steps, reason)


def _generate(service: Service, rows: int, steps: int, draws: bool, forced: torch.Tensor | None = None) -> torch.Tensor:
    """Scores [steps, rows, v] of a run in which each row takes the best one, or of a run along `forced` tokens [steps, rows]."""
    seen = [_scores(service, torch.cat(admit(service, rows, SEED)), 0, draws)]
    for step in range(1, steps):
        if forced is not None:
            service.tokens[:rows].copy_(forced[step - 1])
        elif draws:
            service.tokens[:rows].copy_(seen[-1].argmax(dim=-1))
        seen.append(_scores(service, service.decode(rows)[0][:rows].clone(), step, draws))
    return torch.stack(seen)


def _scores(service: Service, logits: torch.Tensor, step: int, draws: bool) -> torch.Tensor:
    """What the best is taken of: the logits [n, v], or with Gumbel noise of a fixed generator, which makes it a draw from their softmax."""
    if not draws:
        return logits
    uniform = torch.rand(logits.shape, generator=generator_of(service, SEED + 1 + step)).clamp_(1e-6, 1 - 1e-6)
    return logits.double() - (-uniform.log()).log().double().to(logits.device)


def _parting(eager: torch.Tensor, exact: torch.Tensor, chosen: torch.Tensor) -> Parting | None:
    """Compare one row's tokens [steps] with eager's scores [steps, v]; until they part both had the same history."""
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
    hazards=("greedy text differs from eager's (vllm#14722, #19403)", "sampled text differs though the generator is fixed"),
    about="greedy and sampled tokens of a full batch; where one first differs from eager's, its two best scores are as close as its noise",
    run=_run,
)
