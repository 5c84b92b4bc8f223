"""Random numbers: a sampling step under the mode, transformed and held as a decode step is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import torch

from stages.workers.probes.bench import Bench
from stages.workers.probes.held_function import HeldFunction, held_or_refusal
from stages.workers.probes.probe import Document, Probe, held_to, not_run

ROWS, CHOICES = 64, 64
SEED = 13
NUM_CALLS = 3


def sample(logits: torch.Tensor) -> torch.Tensor:
    """One token a row [n] from logits [n, v], by the Gumbel trick on the default generator."""
    uniform = torch.rand_like(logits).clamp_(1e-6, 1 - 1e-6)
    return (logits - (-uniform.log()).log()).argmax(dim=-1)


def drawn(held: HeldFunction) -> list[torch.Tensor]:
    """The first steps after a seed."""
    torch.manual_seed(SEED)
    return [held.step() for _ in range(NUM_CALLS)]


def _run(bench: Bench) -> Iterator[Document]:
    held, refused = held_or_refusal(bench.service, sample, torch.zeros(ROWS, CHOICES, device=bench.service.device))
    if held is None:
        yield not_run("sampling", f"the mode does not take the probe's function: {refused}")
        return
    first = drawn(held)
    num_same = sum(bool(torch.equal(one, other)) for one, other in pairwise(first))
    yield held_to("sampling_varies", "sampling step", num_same, 0, NUM_CALLS, "calls that repeat the numbers of the call before")
    torch.manual_seed(SEED + 1)
    held.step()
    num_other = sum(not torch.equal(one, other) for one, other in zip(drawn(held), first, strict=True))
    yield held_to("sampling_repeats_with_seed", "sampling step", num_other, 0, NUM_CALLS, "calls that a reset seed did not reproduce")


PROBE = Probe(
    name="sampling",
    hazards=("a replay repeats its random numbers (pytorch#84614)", "its generator is not registered"),
    about="a sampling step in this mode: successive calls differ, and a reset seed reproduces them",
    run=_run,
)
