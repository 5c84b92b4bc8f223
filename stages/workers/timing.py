"""Timed blocks: consecutive calls of one shape on three clocks, and passes over the sampled step sequence."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from stages.core.records.plan import Request
from stages.core.sampling import sampled_indices
from stages.instruments.clocks import device_us, wall_us
from stages.traces.planning import padded
from stages.traces.scheduling import PlanSettings, simulate
from stages.workers.fast_host import FastHost
from stages.workers.service import Service
from stages.workers.voiding import Window

SETTLING_CALLS = 3


def time_block(service: Service, shape: str, num_calls: int, pipelined_calls: int, context_tokens: int) -> dict[str, Any]:
    """One block: settling calls, synchronised calls by host clock, the same by device events, one burst.

    Decode starts with every slot filled to `context_tokens`. `voided` says that something compiled inside, or was no replay.
    `first_call_us`: the first settling call, which pays for the switch from another process on the device.
    `host_loop_us`: the host's speed before and after; on a GPU also after every timed call and after the burst. What was
    timed where it was slow is in `repeated_us` by its clock, and was made again.
    """
    host = FastHost(service.device)
    service.fill(context_tokens, torch.Generator().manual_seed(0))
    window = Window(service)
    call = partial(service.run, shape)
    by_clock, by_events = partial(wall_us, call, service.synchronize), partial(device_us, call)
    burst = partial(_pipelined_us, service, shape, pipelined_calls)
    first_call_us, *_ = [by_clock() for _ in range(SETTLING_CALLS)]
    host.leaves_slow(by_clock)
    num_device_calls = num_calls if service.device == "cuda" else 0
    document = {
        "first_call_us": first_call_us,
        "wall_us": [host.timed("wall_us", by_clock, by_clock) for _ in range(num_calls)],
        "device_us": [host.timed("device_us", by_events, by_clock) for _ in range(num_device_calls)],
        "pipelined_us": host.timed("pipelined_us", burst, by_clock, pipelined_calls),
        "repeated_us": host.repeated,
    }
    voided = window.reason(SETTLING_CALLS + host.num_calls)
    return {**document, **host.stretch.shares(), "host_loop_us": host.ended_us(), "voided": voided}


def time_sequence(
    service: Service, requests: list[dict[str, Any]], num_steps: int, plan_settings: dict[str, Any], context_tokens: int
) -> dict[str, Any]:
    """One pass over the sampled sequence, tokens read by the host after every step, as a serving loop must.

    `sequence_s`: the sum of its steps. Between two of them the host's speed is read on a GPU, as in a block (`host_loop_us`);
    a step after which it was slow is in `repeated_s`, and was made again.
    """
    steps = sampled_steps(service, requests, num_steps, plan_settings)
    host = FastHost(service.device)
    service.fill(context_tokens, torch.Generator().manual_seed(0))
    service.synchronize()
    window = Window(service)
    calls = [partial(_step, service, shape, size) for shape, size in steps]
    steps_s = [host.timed("step", partial(_seconds, call), call) for call in calls]
    return {
        "sequence_s": sum(steps_s),
        "repeated_s": host.repeated["step"],
        "host_loop_us": host.loop_us,
        "num_steps": len(steps),
        "num_decode_steps": sum(shape.startswith("decode") for shape, _ in steps),
        "voided": window.reason(host.num_calls),
    }


def _step(service: Service, shape: str, num_tokens: int) -> None:
    service.run(shape)
    service.read_tokens(num_tokens)


def _seconds(call: Callable[[], Any]) -> float:
    began_s = time.perf_counter()
    call()
    return time.perf_counter() - began_s


def sampled_steps(service: Service, requests: list[dict[str, Any]], num_steps: int, plan_settings: dict[str, Any]) -> list[tuple[str, int]]:
    """(shape, tokens to read) of about `num_steps` steps in ten windows spread evenly over the trace's sequence (all, if fewer)."""
    wanted = sampled_indices(service.plan.num_steps, num_steps)
    return [step for index, step in enumerate(_all_steps(service, requests, plan_settings)) if index in wanted]


def _all_steps(service: Service, requests: list[dict[str, Any]], plan_settings: dict[str, Any]) -> Iterator[tuple[str, int]]:
    parsed = [Request.model_validate(request) for request in requests]
    for step in simulate(parsed, service.plan.max_batch, PlanSettings(**plan_settings), lambda n: padded(n, service.plan.prompt_sizes)):
        if step.phase == "decode":
            yield service.decode_shape(step.size), step.size
        else:
            yield service.prefill_shape(step.size), 1


def _pipelined_us(service: Service, shape: str, num_calls: int) -> float:
    service.synchronize()
    began = time.perf_counter_ns()
    for _ in range(num_calls):
        service.run(shape)
    service.synchronize()
    return (time.perf_counter_ns() - began) / 1e3 / num_calls
