"""Walk the trace's steps in their real order and write down, from run-time counters, which path each one took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import groupby, islice
from typing import Any

from stages.core.records.plan import Request
from stages.traces.planning import padded
from stages.traces.scheduling import PlanSettings, ScheduledStep, compaction_moves, simulate
from stages.workers.service import Service, random_prompts


def walk(service: Service, requests: list[dict[str, Any]], max_steps: int, plan_settings: dict[str, Any]) -> dict[str, Any]:
    """Serve the first `max_steps` steps; their paths (run-length coded), totals and what the compiler's log said."""
    counters, log = service.instruments["counters"], service.instruments["log"]
    before = start = counters.snapshot()
    paths: list[tuple[str, str, int]] = []
    for step, size in served(service, [Request.model_validate(request) for request in requests], max_steps, plan_settings):
        after = counters.snapshot()
        paths.append((path_of(after - before, service.mode.replay), step.phase, size))
        before = after
    service.synchronize()
    return {
        "path_runs": [
            {"path": path, "phase": phase, "padded_size": size, "count": sum(1 for _ in same)}
            for (path, phase, size), same in groupby(paths)
        ],
        "counts": dict(before - start),
        "since_spawn": dict(before),
        "backends": counters.backends,
        "missing": counters.missing,
        "log": {name: lines[:50] for name, lines in log.lines.items()},
        "skips": log.skips()[:20],
    }


def served(service: Service, requests: list[Request], max_steps: int, plan_settings: dict[str, Any]) -> Iterator[tuple[ScheduledStep, int]]:
    """Drive the service by the simulated schedule; yields each step after it ran, with its padded size."""
    by_id = {request.request_id: request for request in requests}
    steps = simulate(
        requests, service.plan.max_batch, PlanSettings(**plan_settings), lambda tokens: padded(tokens, service.plan.prompt_sizes)
    )
    num_active = 0
    for step in islice(steps, max_steps):
        if step.phase == "prefill":
            assert step.request_id is not None, "a prefill step names its request"
            prompt = random_prompts(service, [by_id[step.request_id].prompt_tokens], seed=step.request_id)[0]
            service.prefill(num_active, prompt)
            shape = service.prefill_shape(step.size)
            num_active += 1
        else:
            service.decode(num_active)
            shape = service.decode_shape(num_active)
        service.compact(compaction_moves(num_active, step.finished))
        num_active -= len(step.finished)
        yield step, int(shape.partition("/")[2])


def path_of(did: Counter[str], replay: str) -> str:
    """The path of one step from what the counters gained in it.

    `fallback`: the mode replays, and this step ran without (or only partly with) a replay.
    """
    if did["tree_record"]:
        return "recorded"
    if did["capture"]:
        return "captured"
    if did["compilation"]:
        return "recompiled"
    if replay == "trees":
        return "replayed" if did["tree_run"] and did["tree_replay"] == did["tree_run"] == did["replay"] else "fallback"
    if replay == "manual":
        return "replayed" if did["replay"] == 1 and not did["compiled_call"] else "fallback"
    if did["replay"]:
        return "replayed"
    return "compiled" if did["compiled_call"] else "eager"
