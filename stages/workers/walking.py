"""Walk the trace's steps in their real order and write down, from run-time counters, which path each one took."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any

from stages.core.records.plan import Request
from stages.instruments import memory
from stages.traces.planning import padded
from stages.traces.scheduling import PlanSettings, ScheduledStep, compaction_moves, simulate
from stages.workers.service import Service, random_prompts
from stages.workers.step_ledger import StepLedger, path_of

__all__ = ["path_of", "served", "walk"]

NUM_MEMORY_SAMPLES = 50


def walk(service: Service, requests: list[dict[str, Any]], max_steps: int, plan_settings: dict[str, Any]) -> dict[str, Any]:
    """Serve the first `max_steps` steps: the ledger's document, memory along the way, and what torch said since the spawn."""
    counters, log = service.instruments["counters"], service.instruments["log"]
    num_planned = min(max_steps, service.plan.num_steps) or max_steps
    ledger = StepLedger(counters, log, service.mode.replay, num_planned)
    between = max(1, num_planned // NUM_MEMORY_SAMPLES)
    samples = [memory.sample(0)]
    steps = served(service, [Request.model_validate(request) for request in requests], max_steps, plan_settings)
    for index, (step, size, wall_s) in enumerate(steps, 1):
        ledger.add(step.phase, step.size, size, wall_s)
        if index % between == 0:
            samples.append(memory.sample(index))
    return {
        **ledger.document(),
        "backends": counters.backends,
        "missing": counters.missing,
        "log": {name: lines[:50] for name, lines in log.lines.items()},
        "skips": log.skips()[:20],
        "said": [[kind, text, count] for (kind, text), count in Counter(log.said).items()][:100],
        "memory_samples": samples,
    }


def served(
    service: Service, requests: list[Request], max_steps: int, plan_settings: dict[str, Any]
) -> Iterator[tuple[ScheduledStep, int, float]]:
    """Drive the service by the simulated schedule; yields each step after it ran, its padded size and its host seconds."""
    by_id = {request.request_id: request for request in requests}
    steps = simulate(
        requests, service.plan.max_batch, PlanSettings(**plan_settings), lambda tokens: padded(tokens, service.plan.prompt_sizes)
    )
    num_active = 0
    for step in islice(steps, max_steps):
        if step.phase == "prefill":
            assert step.request_id is not None, "a prefill step names its request"
            prompt = random_prompts(service, [by_id[step.request_id].prompt_tokens], seed=step.request_id)[0]
            began_s = time.perf_counter()
            service.prefill(num_active, prompt)
            shape = service.prefill_shape(step.size)
            num_active += 1
        else:
            began_s = time.perf_counter()
            service.decode(num_active)
            shape = service.decode_shape(num_active)
        service.synchronize()
        wall_s = time.perf_counter() - began_s
        service.compact(compaction_moves(num_active, step.finished))
        num_active -= len(step.finished)
        yield step, int(shape.partition("/")[2]), wall_s
