"""Random numbers: a sampling step under the mode, transformed and held as a decode step is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import torch

from stages.workers.probes.bench import Bench
from stages.workers.probes.probe import Document, Probe, held_to
from stages.workers.service import Service
from stages.workers.starting import CALLS_BEFORE_CAPTURE

ROWS, CHOICES = 64, 64
SEED = 13
NUM_CALLS = 3


def sample(logits: torch.Tensor) -> torch.Tensor:
    """One token a row [n] from logits [n, v], by the Gumbel trick on the default generator."""
    uniform = torch.rand_like(logits).clamp_(1e-6, 1 - 1e-6)
    return (logits - (-uniform.log()).log()).argmax(dim=-1)


class Sampler:
    """The step warmed up and held as starting does. It keeps the logits: a capture holds their address."""

    def __init__(self, service: Service) -> None:
        """All choices equally likely."""
        self.mode, self.logits = service.mode, torch.zeros(ROWS, CHOICES, device=service.device)
        self.function = self.mode.transformed(sample, len(service.steps))
        self.held: Callable[[], torch.Tensor] = self.call
        for _ in range(CALLS_BEFORE_CAPTURE):
            self.step()
        if self.mode.replay == "manual":
            self.held = self.mode.held(self.call, service.pool)
        self.step()

    def call(self) -> torch.Tensor:
        """One call of the transformed function."""
        return torch.as_tensor(self.function(self.logits))

    def step(self) -> torch.Tensor:
        """One step as the mode repeats it: tokens [n], copied."""
        self.mode.before_step()
        return self.held().clone()

    def drawn(self) -> list[torch.Tensor]:
        """The first steps after a seed."""
        torch.manual_seed(SEED)
        return [self.step() for _ in range(NUM_CALLS)]


def _run(bench: Bench) -> Iterator[Document]:
    sampler = Sampler(bench.service)
    first = sampler.drawn()
    num_same = sum(bool(torch.equal(one, other)) for one, other in pairwise(first))
    yield held_to("sampling_varies", "sampling step", num_same, 0, NUM_CALLS, "calls that repeat the numbers of the call before")
    torch.manual_seed(SEED + 1)
    sampler.step()
    num_other = sum(not torch.equal(one, other) for one, other in zip(sampler.drawn(), first, strict=True))
    yield held_to("sampling_repeats_with_seed", "sampling step", num_other, 0, NUM_CALLS, "calls that a reset seed did not reproduce")


PROBE = Probe(
    name="sampling",
    hazards=("a replay repeats its random numbers (pytorch#84614)", "its generator is not registered"),
    about="a sampling step in this mode: successive calls differ, and a reset seed reproduces them",
    run=_run,
)
