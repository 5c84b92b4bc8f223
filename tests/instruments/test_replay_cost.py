"""The host time of a replayed step, by hand: what torch marked on an H200 under CUDAGraph Trees, in round numbers."""

from __future__ import annotations

from typing import Any

from stages.core.records.path import ProfiledStep
from stages.core.records.profiled import ReplayCost
from tests.instruments.test_profile_reading import event, marked, read

TREES = [
    marked(0, 144),
    event("TorchDynamo Cache Lookup", "cpu_op", 14, 10),
    event("Torch-Compiled Region: 0/0", "cpu_op", 25, 86),
    event("Pregraph bytecode", "cpu_op", 30, 4),
    event("AOTDispatcher Runtime Wrapper Prologue", "cpu_op", 40, 4),
    event("## Call CompiledFxGraph fsclcs2tv2i4 ##", "cpu_op", 48, 58),
    event("aten::_foreach_copy_", "cpu_op", 60, 8),
    event("cudaLaunchKernel", "cuda_runtime", 62, 4, 6),
    event("cudaGraphLaunch", "cuda_runtime", 78, 20, 7),
    event("cudaDeviceSynchronize", "cuda_runtime", 125, 10),
    event("copy", "kernel", 68, 2, 6),
    event("gemm", "kernel", 90, 36, 7),
]


def cost(events: list[dict[str, Any]], **keywords: Any) -> ReplayCost:
    step: ProfiledStep = read(events, **keywords)
    assert step.replay_cost is not None
    return step.replay_cost


def test_replay_through_trees_is_split_into_its_parts_each_moment_once() -> None:
    found = cost(TREES)
    assert found.guards_us == 10
    assert found.graph_launch_us == 20
    assert found.input_copies_us == 8
    assert found.tree_checks_us == 58 - 20 - 8
    assert found.wrapper_us == 86 - 58
    assert found.other_us == 144 - 10 - 86 - 10
    assert sum(found.model_dump().values()) == 144 - 10


def test_capture_of_ones_own_pays_for_the_launch_alone() -> None:
    events = [marked(0, 103), event("cudaGraphLaunch", "cuda_runtime", 7, 28, 7), event("gemm", "kernel", 28, 60, 7)]
    found = cost([*events, event("cudaDeviceSynchronize", "cuda_runtime", 41, 56)])
    assert found == ReplayCost(guards_us=0, wrapper_us=0, tree_checks_us=0, input_copies_us=0, graph_launch_us=28, other_us=103 - 28 - 56)


def test_call_with_the_median_sum_stands_for_all_so_that_a_first_one_does_not_count() -> None:
    calls = [[event(e["name"], e["cat"], e["ts"] + 5000 * n, e["dur"], e["args"].get("correlation")) for e in TREES] for n in range(3)]
    calls[0][0]["dur"] = 2500.0  # the session's first call
    calls[2][1]["dur"] = 30.0  # guards that took longer, over the start of the region
    found = cost([one for call in calls for one in call], num_calls=3)
    assert found.guards_us in (10, 30)
    assert sum(found.model_dump().values()) == 134


def test_compiled_functions_a_call_are_counted() -> None:
    assert read(TREES).compiled_regions_per_call == 1
    assert read([*TREES, event("Torch-Compiled Region: 1/0", "cpu_op", 112, 5)]).compiled_regions_per_call == 2
