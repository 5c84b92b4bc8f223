"""Tasks whose answers are known, for models that were trained on them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from stages.workers.probes.bench import Bench
from stages.workers.probes.probe import Document, Probe, at_least, not_run
from stages.workers.service import Service

MIN_EXACT_MATCH = 0.99
SEED = 2_000_003


def _run(bench: Bench) -> Iterator[Document]:
    """Exact match of greedy answers, end token included; at least 99 %, or what eager itself reaches."""
    tasks = bench.service.model.tasks()
    if not tasks:
        yield not_run("known_answers", "random weights know no answers")
    for task in tasks:
        examples = task.examples(bench.num_examples, seed=SEED)
        share, own = exact_match(bench.service, examples), exact_match(bench.eager, examples)
        limit = min(MIN_EXACT_MATCH, own)
        yield at_least(f"task_{task.name}", task.name, share, limit, len(examples), f"eager {own:.4f}")


def exact_match(service: Service, examples: Any) -> float:
    """Share of examples whose whole greedy answer is right, decoded in full batches."""
    batch = service.model.max_batch
    right = sum(_answered(service, list(examples[start : start + batch])) for start in range(0, len(examples), batch))
    return right / len(examples)


def _answered(service: Service, examples: list[tuple[list[int], list[int]]]) -> int:
    for slot, (prompt, _) in enumerate(examples):
        service.prefill(slot, torch.tensor(prompt, device=service.device))
    answers = [[token] for token in service.read_tokens(len(examples))]
    for _ in range(max(len(answer) for _, answer in examples) - 1):
        service.decode(len(examples))
        for answer, token in zip(answers, service.read_tokens(len(examples)), strict=True):
            answer.append(token)
    return sum(answer[: len(truth)] == truth for answer, (_, truth) in zip(answers, examples, strict=True))


PROBE = Probe(
    name="known_answers",
    hazards=("answers that pass a tolerance and are wrong",),
    about="exact match of greedy answers on tasks with known answers",
    run=_run,
)
