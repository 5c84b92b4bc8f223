"""Tasks whose answers are known, for models that were trained on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from stages.models.adapters import switch_adapter
from stages.workers.probes.bench import Bench
from stages.workers.probes.probe import Document, Probe, at_least, held_to, not_run
from stages.workers.service import Service

MIN_EXACT_MATCH = 0.99
SEED = 2_000_003


def _run(bench: Bench) -> Iterator[Document]:
    """Exact match of greedy answers, end token included; at least 99 %, or what eager itself reaches."""
    model = bench.service.model
    module: Any = bench.service.module
    tasks, adapters = model.tasks(), model.adapters()
    if not tasks:
        yield not_run("known_answers", "random weights know no answers")
    for task in tasks:
        if adapters:
            switch_adapter(module, adapters.get(task.name))
        examples = task.examples(bench.num_examples, seed=SEED + bench.service.draw)
        share, own = exact_match(bench.service, examples), exact_match(bench.eager, examples)
        limit = min(MIN_EXACT_MATCH, own)
        yield at_least(f"task_{task.name}", task.name, share, limit, len(examples), f"eager {own:.4f}")
        if task.name in adapters:
            yield from _with_wrong_adapters(bench, task.name, examples, adapters)
    if adapters:
        switch_adapter(module, None)


def _with_wrong_adapters(bench: Bench, task: str, examples: Any, adapters: Mapping[str, Any]) -> Iterator[Document]:
    """Another adapter, then none: no answer may be right, or the adapter of an earlier request was read."""
    module: Any = bench.service.module
    other = next((name for name in adapters if name != task), "")
    for name in dict.fromkeys((other, "")):
        switch_adapter(module, adapters.get(name))
        share = exact_match(bench.service, examples)
        subject = f"{task} with {name or 'no adapter'}"
        yield held_to(f"task_{task}_other_adapter", subject, share, 0, len(examples), "right answers")


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
    hazards=("answers that pass a tolerance and are wrong", "the adapter of an earlier request"),
    about="exact match of greedy answers on tasks with known answers; a task of an adapter must be right with it alone",
    run=_run,
)
