"""The decoder's benchmark: what it refuses, how it reads a profile, what it prints. Timing needs a GPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.decoder import main
from benchmarks.decoder_cell import PROFILED_CALLS, REST, group_of, kernel_table
from benchmarks.decoder_tables import report
from stages.core.errors import UserError
from stages.instruments.profile_reading import ProfiledCalls


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "gpt"], "--model: must be one of .*llama_1b"),
        (["--modes", "fast"], "--mode: must be one of .*eager"),
        (["--batches", "0"], "must be 1 or more"),
        (["--blocks", "0"], "must be 1 or more"),
        (["--context", "4096"], "--context: must be from 64 to the model's slot of 2048 tokens"),
        (["--model", "tiny"], "must have slots of 194 tokens or more"),
        (["--inductor", "max_autotune=yes"], "--inductor: must be KEY=VALUE with a JSON value"),
        (["--split_kv", "MAX_PROGRAMS"], "--split_kv: must be KEY=VALUE"),
    ],
)
def test_a_wrong_argument_is_a_user_error(arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["decoder", *arguments])
    with pytest.raises(UserError, match=message):
        main()


@pytest.mark.parametrize(
    ("kernel", "group"),
    [
        ("decode_attention_split", "attention"),
        ("void cudnn::fusion::fmha_kernel", "attention"),
        ("nvjet_tst_64x8_64x16_2x1_v_bz_TNT", "matrix products"),
        ("void cublasLt::splitKreduce_kernel<32, 16>", "matrix products"),
        ("triton_poi_fused__scaled_dot_product_flash_attention_3", REST),
        ("void at::native::vectorized_elementwise_kernel<4>", REST),
    ],
)
def test_a_kernel_belongs_to_the_group_that_its_name_gives_away(kernel: str, group: str) -> None:
    assert group_of(kernel) == group


def profile_of_one_step() -> ProfiledCalls:
    events: list[dict[str, Any]] = []
    for call in range(PROFILED_CALLS):
        start = 1000 * call
        events.append({"name": "opmode decode/1", "cat": "user_annotation", "ts": start, "dur": 900})
        events += [{"name": "gemv_a", "cat": "kernel", "ts": start + 10 * n, "dur": 40} for n in range(2)]
        events.append({"name": "decode_attention_split", "cat": "kernel", "ts": start + 50, "dur": 20})
        events.append({"name": "Memcpy DtoD", "cat": "gpu_memcpy", "ts": start + 80, "dur": 5})
    return ProfiledCalls(events)


def test_the_kernel_table_gives_times_a_step_and_bandwidth_by_group() -> None:
    table = kernel_table(profile_of_one_step(), 1, {"matrix products": 160_000_000, "attention": 40_000_000})
    assert [(row["name"], row["time_us"], row["count"]) for row in table["kernels"]] == [
        ("gemv_a", pytest.approx(80), pytest.approx(2)),
        ("decode_attention_split", pytest.approx(20), pytest.approx(1)),
        ("Memcpy DtoD", pytest.approx(5), pytest.approx(1)),
    ]
    assert table["groups"]["matrix products"]["bytes_per_s"] == pytest.approx(2e12)
    assert table["groups"]["attention"]["bytes_per_s"] == pytest.approx(2e12)
    assert table["groups"][REST]["bytes"] is None


def test_the_report_shows_steps_the_best_cells_kernels_failures_and_peers() -> None:
    def cell(pipelined_us: float) -> dict[str, Any]:
        times = {"pipelined_us": pipelined_us, "wall_us": 120.0, "device_us": None, "token_us": 130.0, "floor_us": 50.0}
        kernels = kernel_table(profile_of_one_step(), 1, {"matrix products": 160_000_000})
        steps = {"1": times | {"ratio": pipelined_us / 50, "voided": []}}
        return {"steps": steps, "kernels": {"1": kernels}, "ceilings": {"bandwidth_bytes_per_s": 4e12}}

    cells = {"eager sdpa/torch": cell(110.0), "cuda_graph sdpa/torch": cell(75.0), "compile sdpa/torch": {"error": "a\nRuntimeError: b"}}
    peers = {
        "vllm": {"error": "ModuleNotFoundError: No module named 'vllm'"},
        "transformers": {"version": "5.17", "token_us": {"1": 2570.4}},
    }
    text = "\n".join(report({"cells": cells, "peers": peers}, [1]))
    assert "compile sdpa/torch: not measured: RuntimeError: b" in text
    assert "vllm: not measured: ModuleNotFoundError: No module named 'vllm'" in text
    assert "cuda_graph sdpa/torch, batch 1: kernels of a step" in text
    assert "160 MB, 50% of bandwidth" in text
    assert "transformers 5.17, us a token: batch 1 2570" in text
    assert " 1.50" in text
    assert "eager sdpa/torch, batch 1: kernels" not in text


@pytest.mark.slow
def test_a_cell_is_measured_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--device", "cpu", "--model", "known_answer", "--precision", "fp32", "--batches", "1", "2", "--context", "100"]
    cells = ["--modes", "eager", "cuda_graph", "--operators", "split_kv/torch", "--blocks", "1"]
    monkeypatch.setattr(sys, "argv", ["decoder", *sizes, *cells, "--out", str(tmp_path / "decoder.json")])
    assert main() == 0
    printed = capsys.readouterr().out
    assert "cuda_graph split_kv/torch: not measured: needs CUDA" in printed
    assert printed.count("eager split_kv/torch ") == 2
