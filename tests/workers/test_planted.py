"""Planted workloads are named for what they are: profiled, timed and judged by the project's own parts, on the CPU."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from stages.analysis import bottleneck
from stages.core.records.path import ProfiledStep
from stages.instruments.compile_phases import CompilePhases
from stages.instruments.profile_reading import ProfiledCalls, read_profile
from stages.workers.profiling import profile_shapes
from stages.workers.served_runs import summary
from stages.workers.serving import serve
from stages.workers.timing import time_block
from tests.workers.conftest import MakeService

SHAPE = "decode/1"


class Planted:
    """A service whose only step is given."""

    def __init__(self, step: Callable[[], Any]) -> None:
        self.device = "cpu"
        self.instruments = {"phases": CompilePhases()}
        self.mode = SimpleNamespace(name="planted")
        self.plan = SimpleNamespace(context_tokens=2)
        self._step = step

    def shapes(self) -> list[str]:
        return [SHAPE]

    def run(self, _: str) -> Any:
        return self._step()

    def fill(self, *_: Any) -> None:
        return None

    def synchronize(self) -> None:
        return None


def judged(step: Callable[[], Any], num_graph_breaks: int = 0) -> Any:
    """The bottleneck of a step, from its timed block and its profile."""
    torch.set_num_threads(1)
    service: Any = Planted(step)
    wall_us = sorted(time_block(service, SHAPE, num_calls=7, pipelined_calls=1, context_tokens=1)["wall_us"])[3]
    (profile,) = profile_shapes(service, num_calls=3)
    return bottleneck.bottleneck(ProfiledStep(**profile), wall_us, bottleneck.CPU, num_graph_breaks)


def test_large_matrix_products_are_operator_bound() -> None:
    left, right = torch.randn(1500, 1500), torch.randn(1500, 1500)
    found = judged(lambda: left @ right)
    assert (found.name, found.shares["operators"] > 0.8) == ("operator_bound", True), found.sentence


def test_sleep_in_python_is_python_bound() -> None:
    tensor = torch.ones(8)

    def step() -> Any:
        time.sleep(0.01)
        return tensor + 1

    found = judged(step)
    assert (found.name, found.shares["python"] > 0.9) == ("python_bound", True), found.sentence


def test_compilation_in_each_step_is_compile_bound() -> None:
    def fresh() -> Any:
        def step(x: torch.Tensor) -> torch.Tensor:
            return (x.sin() + 1).cos()

        torch._dynamo.reset()
        return torch.compile(step, backend="eager")(torch.ones(4))

    found = judged(fresh)
    assert found.name == "compile_bound", found.sentence


@torch._dynamo.disable
def outside() -> None:
    """What a graph break runs: Python, in each step."""
    time.sleep(0.002)


def broken(x: torch.Tensor) -> torch.Tensor:
    x = x + 1
    outside()
    x = x + 1
    outside()
    return x + 1


def whole(x: torch.Tensor) -> torch.Tensor:
    return x + 3


def compiled_step(function: Callable[..., Any]) -> Callable[[], Any]:
    torch._dynamo.reset()
    compiled, tensor = torch.compile(function, backend="eager"), torch.ones(4)
    compiled(tensor)
    return lambda: compiled(tensor)


def test_graph_breaks_in_each_step_are_python_bound_and_named() -> None:
    found = judged(compiled_step(broken), num_graph_breaks=2)
    assert found.name == "python_bound", found.sentence
    assert found.sentence.endswith("; graph breaks cut each call into 3 compiled functions")


def test_step_without_a_graph_break_is_not_cut() -> None:
    assert "graph breaks" not in judged(compiled_step(whole)).sentence


def test_queue_is_named_with_the_load_at_which_the_step_decides(make_service: MakeService) -> None:
    service = make_service("tiny")
    decode, prefill = service.steps["decode/1"], service.steps["prefill/32"]

    def slow(step: Callable[[], Any]) -> Callable[[], Any]:
        return lambda: (time.sleep(0.02), step())[1]

    service.steps |= {"decode/1": slow(decode), "decode/2": slow(service.steps["decode/2"]), "prefill/32": slow(prefill)}
    requests = [{"request_id": index, "arrival_s": index * 0.005, "prompt_tokens": 4, "output_tokens": 2} for index in range(40)]
    run = summary(serve(service, requests, 1.0, 0.2, 10.0), "200", 200.0, 0.2, {"ttft_ms": 100.0, "tpot_ms": 50.0})
    assert run.queueing_share > 0.5
    assert "changes little at this load" in run.queueing
    assert "the step decides" in run.queueing
    assert run.num_completed == 40


def replayed(busy_us: float, kernels: int) -> ProfiledCalls:
    """A call of 1,000 us: one cudaGraphLaunch of 20 us, then kernels of a graph back to back, then the host waits."""
    each = busy_us / kernels
    at = [
        {"ph": "X", "cat": "user_annotation", "name": f"opmode {SHAPE}", "ts": 0.0, "dur": 1000.0, "args": {}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaGraphLaunch", "ts": 5.0, "dur": 20.0, "args": {"correlation": 7}},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "ts": 26.0, "dur": 970.0, "args": {"correlation": 8}},
    ]
    work = [
        {"ph": "X", "cat": "kernel", "name": f"gemm_{index}", "ts": 20.0 + index * each, "dur": each, "args": {"correlation": 7}}
        for index in range(kernels)
    ]
    return ProfiledCalls(at + work)


@pytest.mark.parametrize("kernels", [1, 200])
def test_device_that_is_busy_under_replay_is_device_bound_though_one_call_launched_it_all(kernels: int) -> None:
    (profile,) = read_profile(replayed(970.0, kernels), [SHAPE], 1, "cuda")
    found = bottleneck.bottleneck(profile, 1000.0, bottleneck.GPU)
    assert (found.name, found.shares["busy"]) == ("device_bound", pytest.approx(0.97))
    assert sum(share for name, share in found.shares.items() if name != "busy") == pytest.approx(0.03)  # others saw 0.26 and 0.99
    assert profile.graph_kernels_per_call == kernels
    assert profile.individual_kernels_per_call == 0
    waiting = bottleneck.bottleneck(read_profile(replayed(100.0, kernels), [SHAPE], 1, "cuda")[0], 1000.0, bottleneck.GPU)
    assert waiting.name == "wait_bound"


@pytest.mark.gpu
def test_hundred_tiny_kernels_are_bound_by_the_host_and_one_graph_of_large_products_by_the_device() -> None:
    tensor, large = torch.ones(64, device="cuda"), torch.randn(4096, 4096, device="cuda")

    def on_gpu(step: Callable[[], Any]) -> Any:
        service: Any = Planted(step)
        service.device, service.synchronize = "cuda", torch.cuda.synchronize
        wall_us = sorted(time_block(service, SHAPE, num_calls=7, pipelined_calls=1, context_tokens=1)["wall_us"])[3]
        (profile,) = profile_shapes(service, num_calls=3)
        return bottleneck.bottleneck(ProfiledStep(**profile), wall_us, bottleneck.GPU)

    assert on_gpu(lambda: [tensor.add_(1) for _ in range(100)]).name in ("launch_bound", "python_bound")
    graph = torch.cuda.CUDAGraph()
    for _ in range(3):
        large @ large
    with torch.cuda.graph(graph):
        large @ large
    assert on_gpu(graph.replay).name == "device_bound"
