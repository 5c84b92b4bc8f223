"""A profile by hand: every number that the reading must find can be counted here."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from stages.core.records.path import ProfiledStep
from stages.instruments.profile_reading import ProfiledCalls, read_profile


def event(name: str, category: str, ts: float, dur: float, correlation: int | None = None) -> dict[str, Any]:
    arguments = {} if correlation is None else {"correlation": correlation}
    return {"ph": "X", "name": name, "cat": category, "ts": ts, "dur": dur, "args": arguments}


def marked(begin: float, end: float, shape: str = "decode/1") -> dict[str, Any]:
    return event(f"opmode {shape}", "user_annotation", begin, end - begin)


def read(events: list[dict[str, Any]], device: str = "cuda", num_calls: int = 1) -> ProfiledStep:
    (step,) = read_profile(ProfiledCalls(events), ["decode/1"], num_calls, device)
    return step


def idle_us(step: ProfiledStep) -> float:
    return step.host_launch_us + step.host_wait_us + step.host_compile_us + step.host_python_us


GPU_STEP = [
    marked(0, 100),
    event("cudaMemcpyAsync", "cuda_runtime", 5, 5, 1),
    event("cudaGraphLaunch", "cuda_runtime", 10, 10, 2),
    event("cudaLaunchKernel", "cuda_runtime", 22, 3, 3),
    event("cuLaunchKernelEx", "cuda_driver", 26, 2, 4),
    event("cudaDeviceSynchronize", "cuda_runtime", 60, 40),
    event("Memcpy HtoD", "gpu_memcpy", 12, 2, 1),
    event("flash_fwd_kernel", "kernel", 20, 20, 2),
    event("gemm", "kernel", 30, 20, 2),
    event("triton_poi", "kernel", 52, 4, 3),
    event("triton_red", "kernel", 56, 4, 4),
    event("orphan", "kernel", 70, 10, 99),
]


def test_kernels_belong_to_the_launch_with_their_correlation() -> None:
    step = read(GPU_STEP)
    assert step.kernels_per_call == 6
    assert (step.graph_launches_per_call, step.graph_kernels_per_call) == (1, 2)
    assert (step.individual_kernels_per_call, step.unattributed_kernels_per_call) == (3, 1)
    assert step.attention_kernels == ["flash_fwd_kernel"]


def test_busy_is_the_union_of_device_intervals_and_not_their_sum() -> None:
    step = read(GPU_STEP)
    assert step.busy_us == 2 + (50 - 20) + (60 - 52) + 10
    assert sum(kernel.total_us for kernel in step.top_kernels) == 60


def test_idle_is_split_once_by_what_the_host_did_then() -> None:
    step = read(GPU_STEP)
    assert step.wall_us == 100
    assert step.host_launch_us == (12 - 5) + (20 - 14)
    assert step.host_wait_us == (70 - 60) + (100 - 80)
    assert step.host_compile_us == 0
    assert idle_us(step) == pytest.approx(step.wall_us - step.busy_us)


def test_step_that_replays_nothing_has_no_replay_cost() -> None:
    step = read([marked(0, 100), event("cudaLaunchKernel", "cuda_runtime", 40, 30, 1), event("gemm", "kernel", 80, 10, 1)])
    assert (step.replay_cost, step.compiled_regions_per_call, step.kernels_us) == (None, 0, 10)


def test_compiling_goes_before_launching_and_waiting() -> None:
    events = [
        marked(0, 100),
        event("entire_frame_compile (dynamo_timed)", "user_annotation", 10, 50),
        event("cudaLaunchKernel", "cuda_runtime", 40, 30, 1),
        event("kernel", "kernel", 80, 10, 1),
    ]
    step = read(events)
    assert (step.host_compile_us, step.host_launch_us, step.host_python_us) == (50, 10, 30)


def test_calls_are_averaged_and_what_lies_between_them_does_not_count() -> None:
    second = [event(e["name"], e["cat"], e["ts"] + 500, e["dur"], e["args"].get("correlation")) for e in GPU_STEP]
    between = [event("cudaLaunchKernel", "cuda_runtime", 200, 5, 77), event("stray", "kernel", 210, 50, 77)]
    assert read([*GPU_STEP, *between, *second], num_calls=2) == read(GPU_STEP).model_copy(update={"num_calls": 2})


def test_operators_stand_for_kernels_on_a_cpu() -> None:
    events = [
        marked(0, 100),
        event("aten::linear", "cpu_op", 10, 30),
        event("aten::mm", "cpu_op", 15, 20),
        event("aten::add", "cpu_op", 50, 10),
        event("TorchDynamo Cache Lookup", "cpu_op", 2, 5),
        event("Torch-Compiled Region: 0/0", "cpu_op", 8, 90),
    ]
    step = read(events, "cpu")
    assert (step.busy_us, step.host_python_us, step.kernels_per_call) == (40, 60, 3)
    assert (step.graph_launches_per_call, step.individual_kernels_per_call, step.unattributed_kernels_per_call) == (0, 0, 0)


def test_marked_call_that_the_session_lost_is_noticed() -> None:
    with pytest.raises(AssertionError, match=r"holds 1 of 2 calls of decode/1"):
        read(GPU_STEP, num_calls=2)


def test_real_session_is_read_through_its_export_and_kept_as_perfetto_reads_it(tmp_path: Path) -> None:
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    matrix = torch.ones(64, 64)
    with profile(activities=[ProfilerActivity.CPU]) as session:
        for _ in range(3):
            with record_function("opmode decode/1"):
                matrix @ matrix
    kept = tmp_path / "profiles" / "eager.json.gz"
    step = read(ProfiledCalls.of(session, kept).events, "cpu", num_calls=3)
    assert 0 < step.busy_us < step.wall_us
    assert "aten::matmul" in {kernel.name for kernel in step.top_kernels}
    assert idle_us(step) == pytest.approx(step.wall_us - step.busy_us)
    events = json.loads(gzip.decompress(kept.read_bytes()))["traceEvents"]
    whole = [one for one in events if one.get("ph") == "X"]
    assert sum(one["name"] == "opmode decode/1" for one in whole) >= 3
    assert all({"ts", "dur", "pid", "tid", "name"} <= one.keys() for one in whole)
