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
    `host_loop_us`: the host's speed before and after; a block on a GPU begins on a processor that is fast.
    """
    before_us = _begin_on_fast(service)
    service.fill(context_tokens, torch.Generator().manual_seed(0))
    window = Window(service)
    call = partial(service.run, shape)
    first_call_us, *_ = [wall_us(call, service.synchronize) for _ in range(SETTLING_CALLS)]
    stretch = Stretch()
    num_device_calls = num_calls if service.device == "cuda" else 0
    document = {
        "first_call_us": first_call_us,
        "wall_us": [wall_us(call, service.synchronize) for _ in range(num_calls)],
        "device_us": [device_us(call) for _ in range(num_device_calls)],
        "pipelined_us": _pipelined_us(service, shape, pipelined_calls),
    }
    num_steps = SETTLING_CALLS + num_calls + num_device_calls + pipelined_calls
    return {**document, **stretch.shares(), "host_loop_us": [before_us, HOST.read_us()], "voided": window.reason(num_steps)}


def time_sequence(
    service: Service, requests: list[dict[str, Any]], num_steps: int, plan_settings: dict[str, Any], context_tokens: int
) -> dict[str, Any]:
    """One pass over the sampled sequence, tokens read by the host after every step, as a serving loop must."""
    steps = sampled_steps(service, requests, num_steps, plan_settings)
    _begin_on_fast(service)
    service.fill(context_tokens, torch.Generator().manual_seed(0))
    service.synchronize()
    window = Window(service)
    began_s = time.perf_counter()
    for shape, size in steps:
        service.run(shape)
        service.read_tokens(size)
    sequence_s = time.perf_counter() - began_s
    return {
        "sequence_s": sequence_s,
        "num_steps": len(steps),
        "num_decode_steps": sum(shape.startswith("decode") for shape, _ in steps),
        "voided": window.reason(len(steps)),
    }


def _begin_on_fast(service: Service) -> float:
    """The host's loop, us. On a CPU the steps run on all processors, so that there is none to choose."""
    return HOST.move_to_fast() if service.device == "cuda" else HOST.read_us()


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
