"""An attribute of a module, changed after the mode was ready."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from stages.workers.probes.bench import Bench
from stages.workers.probes.held_function import HeldFunction, held_or_refusal, keeps_python_state
from stages.workers.probes.probe import Document, Probe, held_to, not_run, reported

ROWS, CHOICES = 8, 64
NAME, SUBJECT = "attribute_followed", "a module's attribute"


class Chooser(torch.nn.Module):
    """The best of each row; the attribute says whether that is the largest. One operator that compilers call as it is."""

    def __init__(self) -> None:
        """The largest."""
        super().__init__()
        self.largest = True

    def choose(self, x: torch.Tensor) -> torch.Tensor:
        """[n, v] -> [n, 1]."""
        return x.topk(1, largest=self.largest).values


def _run(bench: Bench) -> Iterator[Document]:
    chooser, service = Chooser(), bench.service
    held, refused = held_or_refusal(service, chooser.choose, torch.zeros(ROWS, CHOICES, device=service.device))
    if held is None:
        yield not_run(NAME, f"the mode does not take the probe's function: {refused}")
        return
    settings = (False, True, False)
    num_stale = sum(not _follows(held, chooser, largest, seed) for seed, largest in enumerate(settings))
    if num_stale and keeps_python_state(service):
        reason = "stale, as documented: Python ran when the step was captured or packaged, and its values stay"
        yield reported(NAME, SUBJECT, num_stale, len(settings), reason)
    else:
        yield held_to(NAME, SUBJECT, num_stale, 0, len(settings), "changes that the next step did not follow")


def _follows(held: HeldFunction, chooser: Chooser, largest: bool, seed: int) -> bool:
    chooser.largest = largest
    held.inputs[0].copy_(torch.rand(ROWS, CHOICES, generator=torch.Generator().manual_seed(seed)))
    return torch.equal(held.step(), chooser.choose(held.inputs[0]))


PROBE = Probe(
    name="module_attribute",
    hazards=("Python state of the capture is kept (pytorch#114844)",),
    about="changes an attribute that a small module's step reads; a compiled step must notice, a capture is documented not to",
    run=_run,
)
