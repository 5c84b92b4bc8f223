"""One cell of `benchmarks.decoder`, in a process of its own: one mode with one attention, at every batch size.

Reads an order (JSON) from stdin and writes its result (JSON) to the file that the order names.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.prepared import traceless_plan
from stages.core.build import build
from stages.instruments.compile_phases import CompilePhases
from stages.instruments.profile_reading import ProfiledCalls
from stages.instruments.static_inputs import declare_static
from stages.workers.ceilings import measure_ceilings
from stages.workers.service import Service
from stages.workers.starting import CALLS_BEFORE_CAPTURE
from stages.workers.timing import SETTLING_CALLS, time_block

NUM_CALLS, PIPELINED_CALLS = 20, 60
STEPS_A_BLOCK = SETTLING_CALLS + 2 * NUM_CALLS + PIPELINED_CALLS
PROFILED_CALLS = 5
GROUPS = {
    "attention": ("attention", "fmha", "flash", "mha"),
    "matrix products": ("gemm", "gemv", "cutlass", "nvjet", "splitk", "triton_tem", "cublas", "xmma"),
}
"""What a kernel's name says about it; the first match counts."""
REST = "elementwise and rest"
POINTWISE = ("triton_poi_", "triton_red_", "triton_per_")  # Inductor's: named after operators around them


def main() -> None:
    """Measure, write."""
    order = json.load(sys.stdin)
    torch.set_grad_enabled(False)
    torch.set_num_threads(1)
    for key, value in order["inductor"].items():
        setattr(_owner(torch._inductor.config, key), key.rpartition(".")[2], value)
    for module, constants in order["constants"].items():
        if constants:
            names = vars(importlib.import_module(f"stages.models.{module}"))
            assert constants.keys() <= names.keys(), f"stages.models.{module} has no {', '.join(constants.keys() - names.keys())}"
            names.update(constants)
    reason = build(order["mode"], "mode").unavailable(order["device"])
    Path(order["out"]).write_text(json.dumps({"error": reason} if reason else measured(order)), encoding="utf-8")


def measured(order: dict[str, Any]) -> dict[str, Any]:
    """Step times, floors and kernels by batch size."""
    began_s = time.perf_counter()
    service = ready_service(order)
    ready_s = time.perf_counter() - began_s
    ceilings = measure_ceilings(service)
    steps = {batch: timed(service, batch, order, ceilings) for batch in order["batches"]}
    kernels = profiled(service, order) if service.device == "cuda" else {}
    return {"ready_s": ready_s, "ceilings": ceilings, "steps": steps, "kernels": kernels, "torch": torch.__version__}


def ready_service(order: dict[str, Any]) -> Service:
    """The model in the mode, decode steps compiled and captured; prefill stays as it is, nothing here calls it."""
    model, mode = build(order["model"], "model"), build(order["mode"], "mode")
    service = Service(
        model.load(order["device"], order["precision"]), model, mode, traceless_plan(model), order["device"], order["precision"]
    )
    service.instruments["phases"] = CompilePhases()
    if mode.transform != "none":
        service.instruments["phases"].install()
        declare_static(service.static_tensors())
    for batch in reversed(order["batches"]):
        service.fill(order["prompt_tokens"], torch.Generator().manual_seed(0))
        shape = service.decode_shape(batch)
        for _ in range(CALLS_BEFORE_CAPTURE):
            service.run(shape)
        service.synchronize()
        service.hold(shape)
    return service


def timed(service: Service, batch: int, order: dict[str, Any], ceilings: dict[str, Any] | None) -> dict[str, Any]:
    """Medians in us around `context_tokens`; `token_us` with the host reading every token, from a prompt's length on."""
    context, shape = order["context_tokens"], service.decode_shape(batch)
    blocks = [time_block(service, shape, NUM_CALLS, PIPELINED_CALLS, context - STEPS_A_BLOCK // 2) for _ in range(order["blocks"])]
    voided = [block["voided"] for block in blocks if block["voided"]]
    num_bytes = service.model.step_bytes(batch, context, order["precision"])
    floor_us = num_bytes / ceilings["bandwidth_bytes_per_s"] * 1e6 if ceilings else None
    pipelined_us = median(block["pipelined_us"] for block in blocks)
    return {
        "pipelined_us": pipelined_us,
        "wall_us": median(time_us for block in blocks for time_us in block["wall_us"]),
        "device_us": median(times) if (times := [time_us for block in blocks for time_us in block["device_us"]]) else None,
        "token_us": token_us(service, batch, order["prompt_tokens"], order["num_tokens"]),
        "bytes": num_bytes,
        "floor_us": floor_us,
        "ratio": pipelined_us / floor_us if floor_us else None,
        "voided": voided,
    }


def token_us(service: Service, batch: int, prompt_tokens: int, num_tokens: int) -> float:
    """Wall time of a whole token a sequence, greedy choice on the device, read by the host after every step."""
    service.fill(prompt_tokens, torch.Generator().manual_seed(0))
    service.decode(batch)
    service.read_tokens(batch)
    began_s = time.perf_counter()
    for _ in range(num_tokens):
        service.decode(batch)
        service.read_tokens(batch)
    return (time.perf_counter() - began_s) / num_tokens * 1e6


def profiled(service: Service, order: dict[str, Any]) -> dict[int, Any]:
    """By batch: each kernel's time a step and count, and by group the bytes that must move and the bandwidth reached."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]) as session:
        for batch in order["batches"]:
            service.fill(order["context_tokens"], torch.Generator().manual_seed(0))
            service.synchronize()
            for _ in range(PROFILED_CALLS):
                with torch.profiler.record_function(f"opmode decode/{batch}"):
                    service.decode(batch)
                    service.synchronize()
    calls = ProfiledCalls.of(session)
    return {batch: kernel_table(calls, batch, group_bytes(service, batch, order)) for batch in order["batches"]}


def group_bytes(service: Service, batch: int, order: dict[str, Any]) -> dict[str, int]:
    """What each group must read: the weights, and the filled part of the cache."""
    weights = service.model.step_bytes(batch, 0, order["precision"])
    return {"matrix products": weights, "attention": service.model.step_bytes(batch, order["context_tokens"], order["precision"]) - weights}


def kernel_table(calls: ProfiledCalls, batch: int, num_bytes: dict[str, int]) -> dict[str, Any]:
    """Kernels of one batch size by total time, and their groups."""
    times: dict[str, float] = defaultdict(float)
    counts: dict[str, float] = defaultdict(float)
    for window in calls.windows(f"decode/{batch}"):
        for event in calls.within(window, ("kernel", "gpu_memcpy", "gpu_memset")):
            times[event["name"]] += event["dur"] / PROFILED_CALLS
            counts[event["name"]] += 1 / PROFILED_CALLS
    groups: dict[str, dict[str, Any]] = {}
    for name, time_us in times.items():
        group = groups.setdefault(group_of(name), {"time_us": 0.0, "count": 0.0})
        group["time_us"] += time_us
        group["count"] += counts[name]
    for name, group in groups.items():
        group["bytes"] = num_bytes.get(name)
        group["bytes_per_s"] = group["bytes"] / group["time_us"] * 1e6 if group["bytes"] else None
    rows = [{"name": name, "group": group_of(name), "time_us": times[name], "count": counts[name]} for name in times]
    return {"groups": groups, "kernels": sorted(rows, key=lambda row: -row["time_us"])}


def group_of(kernel: str) -> str:
    """The group that a kernel's name gives away."""
    lowered = kernel.lower()
    if lowered.startswith(POINTWISE):
        return REST
    return next((group for group, words in GROUPS.items() if any(word in lowered for word in words)), REST)


def _owner(config: Any, key: str) -> Any:
    for part in key.split(".")[:-1]:
        config = getattr(config, part)
    assert hasattr(config, key.rpartition(".")[2]), f"torch._inductor.config has no {key}"
    return config


if __name__ == "__main__":
    main()
