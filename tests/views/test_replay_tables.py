"""Replay cost with its remedies, and kernels by name, from the example study."""

from __future__ import annotations

from typing import Any

from stages.views.tables.replay import kernel_table, replay_cost

TREES = {"guards_us": 10.0, "wrapper_us": 28.0, "tree_checks_us": 38.0, "input_copies_us": 0.0, "graph_launch_us": 20.0, "other_us": 9.0}


def test_parts_of_a_replay_stand_beside_their_remedies(example: dict[str, Any]) -> None:
    example["modes"]["cudagraph_trees"]["profile"]["decode/1"]["replay_cost"] = TREES
    table = replay_cost(example)
    trees = list(table.columns).index("cudagraph_trees")
    own = list(table.columns).index("compile_cuda_graph")
    found = {row[0]: row for row in table.rows}
    assert {name: row[trees] for name, row in found.items()} == {
        "guards": "10.0 µs",
        "wrappers": "28.0 µs",
        "tree checks": "38.0 µs",
        "input copies": "0 µs",
        "graph launch": "20.0 µs",
        "Python around it": "9.00 µs",
        "together": "105 µs",
    }
    assert (found["guards"][own], found["together"][own]) == ("0 µs", "29.0 µs")
    assert "guard_filter_fn" in found["guards"][-2]
    assert "mark_static_address" in found["input copies"][-2]
    assert all(row[-1].startswith("https://") for name, row in found.items() if name not in ("Python around it", "together"))
    assert "176 µs" in table.note


def test_study_without_replay_has_no_replay_cost(cpu_study: dict[str, Any]) -> None:
    for mode in cpu_study["modes"].values():
        mode["profile"] = {}
    assert replay_cost(cpu_study).rows == []


def test_kernels_are_those_that_differ_and_add_up_to_all(example: dict[str, Any]) -> None:
    rows = [row for row in kernel_table(example).rows if row[0] == "decode batch 1"]
    names = [row[2] for row in rows if row[1] == "cuda_graph against compile_cuda_graph"]
    assert names.count("all kernels") == 1
    assert "triton_poi_fused_rope_0" in names
    assert "vectorized_elementwise_kernel<8, CUDAFunctor_add>" in names
    assert names[-2:] == ["all others", "all kernels"]


def test_operators_of_a_cpu_are_no_kernels(cpu_study: dict[str, Any]) -> None:
    assert kernel_table(cpu_study).rows == []
