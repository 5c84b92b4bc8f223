"""Walk the trace's steps in their real order and write down, from run-time counters, which path each one took."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from stages.core.records.plan import Request
from stages.instruments import memory
from stages.instruments.nvtx import marked
from stages.traces.planning import padded
from stages.traces.scheduling import PlanSettings, ScheduledStep, compaction_moves, simulate
from stages.workers.adapter_bank import AdapterBank
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
    for index, done in enumerate(steps, 1):
        ledger.add(done.step.phase, done.step.size, done.padded_size, done.wall_s, done.adapter_id, done.switched)
        if index % between == 0:
            samples.append(memory.sample(index))
    return {
        **ledger.document(),
        "backends": counters.backends,
        "missing": counters.missing,
        "skips": log.skips()[:20],
        "said": [[kind, text, count] for (kind, text), count in Counter(log.said).items()][:100],
        "memory_samples": samples,
        "graphs": service.instruments["graph_memory"].rows if "graph_memory" in service.instruments else [],
    }


class Done(NamedTuple):
    """A step that ran: its padded size, its host seconds, the adapter it ran under, and whether that was switched to for it."""

    step: ScheduledStep
    padded_size: int
    wall_s: float
    adapter_id: int | None
    switched: bool


def served(service: Service, requests: list[Request], max_steps: int, plan_settings: dict[str, Any]) -> Iterator[Done]:
    """Drive the service by the simulated schedule; yields each step after it ran.

    The service holds one adapter at a time: that of a prefill's request, and in a decode step that of the first slot's.
    """
    by_id = {request.request_id: request for request in requests}
    bank = AdapterBank(service)
    steps = simulate(
        requests, service.plan.max_batch, PlanSettings(**plan_settings), lambda tokens: padded(tokens, service.plan.prompt_sizes)
    )
    slots: list[Request] = []
    for index, step in enumerate(islice(steps, max_steps)):
        if step.phase == "prefill":
            assert step.request_id is not None, "a prefill step names its request"
            slots.append(by_id[step.request_id])
        adapter_id = (slots[-1] if step.phase == "prefill" else slots[0]).adapter_id
        switched = bank.use(adapter_id)
        shape, wall_s = _ran(service, step, slots, index)
        moves = compaction_moves(len(slots), step.finished)
        service.compact(moves)
        for source, target in moves:
            slots[target] = slots[source]
        del slots[len(slots) - len(step.finished) :]
        yield Done(step, int(shape.partition("/")[2]), wall_s, adapter_id, switched)


def _ran(service: Service, step: ScheduledStep, slots: list[Request], index: int) -> tuple[str, float]:
    """The shape of a step, and its host seconds until the device is done."""
    if step.phase == "prefill":
        prompt = random_prompts(service, [slots[-1].prompt_tokens], seed=slots[-1].request_id)[0]
        shape, run = service.prefill_shape(step.size), partial(service.prefill, len(slots) - 1, prompt)
    else:
        shape, run = service.decode_shape(len(slots)), partial(service.decode, len(slots))
    with marked(f"{service.mode.name} {step.phase} step {index} size {step.size} padded {shape.partition('/')[2]}"):
        began_s = time.perf_counter()
        run()
        service.synchronize()
        return shape, time.perf_counter() - began_s
