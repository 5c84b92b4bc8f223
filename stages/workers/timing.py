"""Timed blocks: consecutive calls of one shape on three clocks, and passes over the sampled step sequence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch

from stages.core.records.plan import Request
from stages.core.sampling import sampled_indices
from stages.instruments.clocks import device_us, wall_us
from stages.instruments.contention import Stretch
from stages.instruments.host_speed import HostSpeed
from stages.traces.planning import padded
from stages.traces.scheduling import PlanSettings, simulate
from stages.workers.service import Service
from stages.workers.voiding import Window

SETTLING_CALLS = 3
HOST = HostSpeed()
"""Of this process: what all its services have seen."""


def time_block(service: Service, shape: str, num_calls: int, pipelined_calls: int, context_tokens: int) -> dict[str, Any]:
    """One block: settling calls, synchronised calls by host clock, the same by device events, one burst.

    Decode starts with every slot filled to `context_tokens`. `voided` says that something compiled inside, or was no replay.
    `first_call_us`: the first settling call, which pays for the switch from another process on the device.
    `host_loop_us`: the host's speed before and after; on a GPU also after every timed call but the burst's, where a thread
    whose processor has become slow moves on.
    """
    host_us = [_begin_on_fast(service)]
    service.fill(context_tokens, torch.Generator().manual_seed(0))
    window = Window(service)
    call = partial(service.run, shape)
    first_call_us, *_ = [wall_us(call, service.synchronize) for _ in range(SETTLING_CALLS)]
    stretch = Stretch()
    num_device_calls = num_calls if service.device == "cuda" else 0
    document = {
        "first_call_us": first_call_us,
        "wall_us": [_then_stay(service, wall_us(call, service.synchronize), host_us) for _ in range(num_calls)],
        "device_us": [_then_stay(service, device_us(call), host_us) for _ in range(num_device_calls)],
        "pipelined_us": _pipelined_us(service, shape, pipelined_calls),
    }
    num_steps = SETTLING_CALLS + num_calls + num_device_calls + pipelined_calls
    return {**document, **stretch.shares(), "host_loop_us": [*host_us, HOST.read_us()], "voided": window.reason(num_steps)}


def time_sequence(
    service: Service, requests: list[dict[str, Any]], num_steps: int, plan_settings: dict[str, Any], context_tokens: int
) -> dict[str, Any]:
    """One pass over the sampled sequence, tokens read by the host after every step, as a serving loop must.

    `sequence_s`: the sum of its steps. Between two of them the host's speed is read on a GPU, as in a block (`host_loop_us`).
    """
    steps = sampled_steps(service, requests, num_steps, plan_settings)
    host_us = [_begin_on_fast(service)]
    service.fill(context_tokens, torch.Generator().manual_seed(0))
    service.synchronize()
    window = Window(service)
    steps_s = [_then_stay(service, _step_s(service, shape, size), host_us) for shape, size in steps]
    return {
        "sequence_s": sum(steps_s),
        "host_loop_us": host_us,
        "num_steps": len(steps),
        "num_decode_steps": sum(shape.startswith("decode") for shape, _ in steps),
        "voided": window.reason(len(steps)),
    }


def _begin_on_fast(service: Service) -> float:
    """The host's loop, us. On a CPU the steps run on all processors, so that there is none to choose."""
    return HOST.move_to_fast() if service.device == "cuda" else HOST.read_us()


def _then_stay(service: Service, timed: float, host_us: list[float]) -> float:
    """What was timed. On a GPU the host's speed after it goes to `host_us`, and the thread leaves a slow processor."""
    if service.device == "cuda":
        host_us.append(HOST.stay_on_fast())
    return timed


def _step_s(service: Service, shape: str, num_tokens: int) -> float:
    began_s = time.perf_counter()
    service.run(shape)
    service.read_tokens(num_tokens)
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
