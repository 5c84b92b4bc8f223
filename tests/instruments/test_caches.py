"""Caches beside torch's folder: whatever could have made a start warm is in the record."""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.instruments import caches


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"12345")


def test_kernels_are_counted_apart_from_other_files(tmp_path: Path) -> None:
    put(tmp_path, "a/x.so", "a/x.cpp", "triton/y.cubin", "triton/y.json")
    assert (caches.listing(tmp_path), caches.kernels(tmp_path)) == (4, {"a/x.so", "triton/y.cubin"})
    assert (caches.listing(tmp_path / "absent"), caches.kernels(tmp_path / "absent")) == (0, frozenset())


def test_kernels_that_came_are_named_and_counted() -> None:
    before = frozenset({"a/attend.cubin"})
    after = before | {"b/attend.cubin", "c/attend.cubin", "d/add.cubin"}
    assert caches.new_kernels(before, after) == {"attend.cubin": 2, "add.cubin": 1}
    assert caches.new_kernels(frozenset(), after) == {}


def test_drivers_cache_is_listed_where_its_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "0/1/a", "0/2/b")
    monkeypatch.setenv("CUDA_CACHE_PATH", str(tmp_path))
    monkeypatch.setenv("CUDA_CACHE_DISABLE", "1")
    found = caches.cache_state("none")
    assert (found.driver_jit_files, found.driver_jit_bytes, found.driver_jit_disabled) == (2, 10, True)
    assert (found.remote_caches, found.pgo_job_id) == ({}, None)


def test_pgo_job_and_remote_caches_of_torch_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch._inductor.config as inductor
    import torch.compiler.config as compiler

    monkeypatch.setenv("CUDA_CACHE_PATH", str(tmp_path))
    with compiler.patch(job_id="nightly"), inductor.patch(fx_graph_remote_cache=True):
        found = caches.cache_state("inductor")
    assert (found.pgo_job_id, found.remote_caches["fx_graph"], found.remote_caches["aot_autograd"]) == ("nightly", True, False)
    assert found.unknown == ""


def test_names_that_a_torch_lacks_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    import types

    import torch._inductor

    monkeypatch.setattr(torch._inductor, "config", types.SimpleNamespace(fx_graph_remote_cache=None))
    found = caches.cache_state("inductor")
    assert "autotune_remote_cache" in found.unknown
    assert found.remote_caches["fx_graph"] is False


def test_counters_and_regions_stand_beside_both_listings() -> None:
    from torch._dynamo.utils import counters

    before = counters["inductor"]["fxgraph_cache_miss"]
    found = caches.cache_use((0, 5), (frozenset(), frozenset("ab")), {"fx_codegen_and_compile": 3, "compile_file": 1})
    assert (found.num_files_after, found.num_kernels_after, found.num_graphs_compiled, found.num_kernel_compiles) == (5, 2, 3, 1)
    assert found.fx_graph_misses == before
