"""One run under load, in real time: what arrives is sent to the loop, and what became of it is counted.

A request's clock starts at its scheduled arrival, not when the loop noticed it, so a stalled loop shows in the tails.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np

from stages.core.records.plan import Request
from stages.core.service_levels import percentiles
from stages.instruments import gc_pauses, hardware, memory
from stages.workers.served_sequence import Sequence, choose_sample, sampled
from stages.workers.service import Service, random_prompts
from stages.workers.serving_loop import Loop

MEMORY_SAMPLES = 60  # along the time in which arrivals are sent


def serve(
    service: Service,
    requests: list[dict[str, Any]],
    rate_factor: float,
    duration_s: float,
    grace_s: float,
    max_sequences: int | None = None,
    num_sampled: int = 0,
    freeze_gc: bool = False,
) -> dict[str, Any]:
    """Send what arrives within `duration_s` (arrival times divided by `rate_factor`), wait `grace_s` for the rest.

    `max_sequences`: in flight at most, where that is less than the slots. `num_sampled`: requests whose tokens are given back.
    `freeze_gc`: leave what the ready worker holds out of Python's garbage collections.
    """
    sent = [one for one in map(Request.model_validate, requests) if one.arrival_s / rate_factor <= duration_s]
    prompts = random_prompts(service, [request.prompt_tokens for request in sent], seed=1)
    sequences = [Sequence(request, request.arrival_s / rate_factor, prompt) for request, prompt in zip(sent, prompts, strict=True)]
    choose_sample(sequences, num_sampled, seed=1)
    max_active = min(service.model.max_batch, max_sequences or service.model.max_batch)
    service.synchronize()
    given_before = service.num_baseline_calls()
    energy_j = hardware.energy_j() if service.device == "cuda" else None
    with gc_pauses.watched(freeze_gc) as pauses:
        loop = Loop(
            service,
            time.perf_counter(),
            deque(sequences),
            max_active,
            sample_every_s=duration_s / MEMORY_SAMPLES,
            has_sample=num_sampled > 0,
            pauses=pauses,
        )
        while (loop.waiting or loop.queue or loop.active) and loop.now_s() < duration_s + grace_s:
            loop.step()
    return {
        "requests": [sequence.document() for sequence in sequences],
        "energy_j": _spent(energy_j, hardware.energy_j()) if service.device == "cuda" else None,
        "peak_bytes": memory.peak_bytes(),
        "max_active": max_active,
        "sampled": sampled(sequences),
        "num_baseline_steps": service.num_baseline_calls() - given_before,
        **found(loop, sequences),
    }


def _spent(before: float | None, after: float | None) -> float | None:
    """Joules between two readings; None where the driver gave only one."""
    return None if before is None or after is None else after - before


def found(loop: Loop, sequences: list[Sequence]) -> dict[str, Any]:
    """What the loop counted."""
    gaps = np.repeat([1e3 * gap_s for gap_s, _ in loop.gaps], [count for _, count in loop.gaps]).tolist() if loop.gaps else []
    work = loop.clock.found()
    return {
        "lateness_ms": [1e3 * (sequence.noticed_s - sequence.arrival_s) for sequence in sequences if sequence.noticed_s is not None],
        "num_decode_steps": loop.num_decode_steps,
        "num_prefill_steps": loop.num_prefill_steps,
        "batch_histogram": {str(size): count for size, count in sorted(loop.histogram.items())},
        "host_us_per_decode_step": 1e6 * loop.host_s / max(1, loop.num_decode_steps),
        "host_work": work.model_dump() if work else None,
        "itl_ms": percentiles(gaps).model_dump(),
        "num_compiles_during": loop.num_compiles,
        "gc": loop.pauses.found(),
        "busy_s": loop.busy_s,
        "memory_samples": loop.memory_samples,
    }
