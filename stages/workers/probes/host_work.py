"""Work of the host inside a step: a Python function with an effect, such as a counter or a log line."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from stages.workers.probes.bench import Bench
from stages.workers.probes.held_function import held_or_refusal, keeps_python_state
from stages.workers.probes.probe import Document, Probe, held_to, not_run, reported

NUM_STEPS = 4
NAME, SUBJECT = "host_work_done", "a step with a Python counter"


class Counted:
    """A step that counts its runs in Python."""

    def __init__(self, compiles: bool) -> None:
        """A compiler must not trace the counter, only call it."""
        self.num_runs = 0
        self.note = torch.compiler.disable(self.count) if compiles else self.count

    def count(self) -> None:
        """One run more."""
        self.num_runs += 1

    def best(self, x: torch.Tensor) -> torch.Tensor:
        """[n, v] -> [n, 1]: the largest of each row."""
        self.note()
        return x.topk(1).values


def _run(bench: Bench) -> Iterator[Document]:
    service, counted = bench.service, Counted(bench.service.mode.transform != "none")
    held, refused = held_or_refusal(service, counted.best, torch.zeros(8, 64, device=service.device))
    if held is None:
        yield not_run(NAME, f"the mode does not take the probe's function: {refused}")
        return
    counted.num_runs = 0
    for _ in range(NUM_STEPS):
        held.step()
    missed = NUM_STEPS - counted.num_runs
    if missed > 0 and keeps_python_state(service):
        yield reported(NAME, SUBJECT, missed, NUM_STEPS, "left out, as documented: Python ran when the step was captured or packaged")
    else:
        yield held_to(NAME, SUBJECT, abs(missed), 0, NUM_STEPS, "steps whose Python did not run once")


PROBE = Probe(
    name="host_work",
    hazards=("CPU work of a step runs at capture only (CUDA graphs notes)",),
    about="a step that also counts in Python: eager and compiled steps count every run, a capture is documented not to",
    run=_run,
)
