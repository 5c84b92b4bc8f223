"""One sequence, as many as fit, and one more."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from stages.workers.probes.bench import Bench, answer
from stages.workers.probes.probe import Document, Probe, held_to, held_to_error_rule
from stages.workers.service import Service


def _run(bench: Bench) -> Iterator[Document]:
    for rows in dict.fromkeys((1, bench.sizes[-1])):
        trio = (answer(service, rows) for service in bench.trio)
        yield held_to_error_rule(bench, "edge_sizes", f"{rows} sequences", trio, 3 * rows)
    yield _past_the_largest(bench.service)


def _past_the_largest(service: Service) -> Document:
    """Both phases, one above the largest planned size: the service must refuse before anything runs."""
    plan, before = service.plan, service.tokens.clone()
    too_long = torch.zeros(plan.prompt_sizes[-1] + 1, dtype=torch.int64, device=service.device)
    calls: list[Callable[[], Any]] = [lambda: service.decode(plan.capture_sizes[-1] + 1), lambda: service.prefill(0, too_long)]
    num_accepted = len(calls) - sum(_is_refused(call) for call in calls)
    subject = f"{plan.capture_sizes[-1] + 1} sequences, prompt of {len(too_long)}"
    changed = int((service.tokens != before).sum())
    return held_to(
        "past_the_largest", subject, num_accepted + changed, 0, len(calls), f"{len(calls) - num_accepted} of {len(calls)} refused"
    )


def _is_refused(call: Callable[[], Any]) -> bool:
    try:
        call()
    except (AssertionError, IndexError, RuntimeError):
        return True
    return False


PROBE = Probe(
    name="edge_sizes",
    hazards=("size 1 is specialised apart", "a shape above the largest capture (pytorch#195604)"),
    about="one sequence and a full batch against the reference; one sequence or prompt token too many must be refused, and is counted",
    run=_run,
)
