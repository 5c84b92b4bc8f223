"""A branch on data: the step waits for a value and takes one of two ways."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from stages.core.errors import UserError
from stages.workers.probes.bench import Bench
from stages.workers.probes.held_function import HeldFunction, held_or_refusal, refusal
from stages.workers.probes.probe import Document, Probe, held_to, not_run

ROWS = (0.5, 3.0, 0.25, 0.5, 4.0)
NAME, SUBJECT = "branch_taken", "a step with a branch on data"


def branch(x: torch.Tensor) -> torch.Tensor:
    """[v] -> [1]: the largest, or the smallest where the largest is not above one. Operators that compilers call as they are."""
    if x.topk(1).values > 1:
        return x.topk(1).values
    return x.topk(1, largest=False).values


def _run(bench: Bench) -> Iterator[Document]:
    """The step is warmed up and captured on the first way."""
    device = bench.service.device
    held, refused = held_or_refusal(bench.service, branch, torch.tensor([2.0, 1.0, 0.0], device=device))
    if refused.startswith(UserError.__name__):
        yield not_run(NAME, f"the mode does not take the probe's function: {refused}")
        return
    if held is None:
        yield held_to(NAME, SUBJECT, 0, 0, 1, f"refused: {refused}")
        return
    try:
        num_wrong = sum(not _right(held, largest) for largest in ROWS)
    except RuntimeError as error:
        yield held_to(NAME, SUBJECT, 0, 0, len(ROWS), f"refused: {refusal(error)}")
        return
    yield held_to(NAME, SUBJECT, num_wrong, 0, len(ROWS), "steps that took the way of the capture")


def _right(held: HeldFunction, largest: float) -> bool:
    held.inputs[0].copy_(torch.tensor([largest, largest / 2, largest / 4]))
    return torch.equal(held.step(), branch(held.inputs[0]))


PROBE = Probe(
    name="data_branch",
    hazards=("the branch of the capture is replayed for all data", "a step that waits for a value (.item(), bool())"),
    about="a small step with a branch on a value, captured on one way and run on the other: the right way, or a refusal",
    run=_run,
)
