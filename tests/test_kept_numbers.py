"""Numbers that documents quote from a kept study are those of the study."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.planted.outcomes import FAULTS
from tests.quoted_tables import quoted_rows

ROOT = Path(__file__).resolve().parents[1]
STUDIES = ROOT / "reports" / "studies"
STUDY = json.loads((STUDIES / "h200-llama-1b" / "study.json").read_text(encoding="utf-8"))
DECODER = json.loads((STUDIES / "h200-decoder" / "decoder.json").read_text(encoding="utf-8"))
CELL = DECODER["cells"]["compile_cuda_graph split_kv/written_out"]
BANDWIDTH = CELL["ceilings"]["bandwidth_bytes_per_s"]
BATCHES = ("1", "8", "64")
CACHES = ("cold", "warm", "artifact")


def _table(source: str) -> list[list[str]]:
    return quoted_rows("docs/performance.md", source)


@pytest.mark.parametrize("row", _table("h200-llama-1b/study.json"), ids=lambda row: row[0])
def test_step_times_of_the_decoder_are_those_of_the_study(row: list[str]) -> None:
    name, *times = row
    if name == "floor":
        found = [STUDY["modes"]["eager"]["floor"][batch]["floor_us"] for batch in BATCHES]
    else:
        found = [STUDY["modes"][name]["steady_state"]["decode"][batch]["pipelined_us"]["median"] for batch in BATCHES]
    assert times == [f"{value:,.0f}" for value in found]


def test_every_mode_is_in_the_decoders_table() -> None:
    assert {row[0] for row in _table("h200-llama-1b/study.json")} == {"floor", *STUDY["modes"]}


def test_other_engines_tokens_are_those_measured() -> None:
    ours = {batch: step["token_us"] for batch, step in CELL["steps"].items()}
    times = [ours, *(DECODER["peers"][name]["token_us"] for name in ("transformers", "transformers_eager"))]
    lines = [" | ".join(f"{row[batch]:,.0f}" for batch in BATCHES) for row in times]
    table = _table("h200-decoder/decoder.json")
    assert [" | ".join(cells[1:]) for cells in table] == lines


def test_kernels_of_a_step_are_those_measured_and_sum_to_the_step() -> None:
    groups = {batch: CELL["kernels"][batch]["groups"] for batch in BATCHES}
    rows = zip(("matrix products", "attention", "elementwise and rest"), _table("h200-decoder/decoder.json kernels"), strict=True)
    for group, (_, kernels, *cells) in rows:
        found = [groups[batch][group] for batch in BATCHES]
        assert kernels == " / ".join(f"{one['count']:.0f}" for one in found)
        assert cells == [shown for one in found for shown in (f"{one['time_us']:,.0f}", _of_bandwidth(one["bytes_per_s"]))]
    for batch, by_group in groups.items():
        total_us = sum(one["time_us"] for one in by_group.values())
        assert total_us == pytest.approx(CELL["steps"][batch]["pipelined_us"], rel=0.01)


def test_products_of_the_layers_take_longer_than_their_bytes_need_and_that_of_the_head_does_not() -> None:
    products = [kernel for kernel in CELL["kernels"]["1"]["kernels"] if kernel["group"] == "matrix products"]
    (head_us,) = [kernel["time_us"] for kernel in products if round(kernel["count"]) == 1]
    head_bytes = STUDY["model"]["vocab_size"] * STUDY["model"]["hidden_size"] * 2
    needed_us = [1e6 * num / BANDWIDTH for num in (head_bytes, CELL["kernels"]["1"]["groups"]["matrix products"]["bytes"] - head_bytes)]
    layers_us = sum(kernel["time_us"] for kernel in products) - head_us
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    assert f"the head's ({head_bytes / 1e6:.0f} MB)" in text
    assert head_us == pytest.approx(needed_us[0], rel=0.01)
    assert f"each of the 64 in the layers {(layers_us - needed_us[1]) / 64:.1f} us more" in text


def test_cost_of_an_adapter_is_that_measured() -> None:
    steps = {
        file: {cell.split()[0]: found["steps"] for cell, found in json.loads((STUDIES / file).read_text(encoding="utf-8"))["cells"].items()}
        for file in ("h200-decoder/decoder.json", "h200-decoder/adapter.json")
    }
    without, with_adapter = (found["compile_cuda_graph"] for found in steps.values())
    more = [with_adapter[batch]["pipelined_us"] - without[batch]["pipelined_us"] for batch in BATCHES]
    rows = {cells[0]: cells[1:] for cells in _table("h200-decoder/adapter.json")}
    assert rows.pop("more than without") == [f"{us:,.0f}" for us in more]
    for mode, times in rows.items():
        assert times == [f"{steps['h200-decoder/adapter.json'][mode][batch]['pipelined_us']:,.0f}" for batch in BATCHES]


def test_every_planted_fault_of_the_path_was_detected_on_a_gpu_and_no_twin_raised() -> None:
    rows = json.loads((STUDIES / "h200-proof" / "faults.json").read_text(encoding="utf-8"))["rows"]
    assert {row["outcome"] for row in rows} == {"detected", "raises nothing"}
    for kind in ("fault", "twin"):
        assert {fault for row in rows if row["kind"] == kind for fault in row["faults"]} == set(FAULTS)
    assert {row["test"] for row in rows if row["kind"] == "fault" and "NVIDIA" not in row["on"]} == {
        "test_trees_on_a_cpu_are_unavailable",
        "test_trees_that_do_not_say_that_they_need_cuda_are_refuted",
    }


def test_coverage_and_churn_of_the_proof_are_those_of_the_studys_report() -> None:
    report, proof = (
        (STUDIES / file).read_text(encoding="utf-8").splitlines() for file in ("h200-llama-1b/report.md", "h200-proof/coverage.md")
    )
    tables = [line for line in proof if line.startswith("| ")]
    assert len(tables) == 2 * (2 + len(STUDY["modes"]))
    assert set(tables) <= set(report)


def test_replaying_modes_replayed_every_one_of_twenty_thousand_steps() -> None:
    for name, mode in STUDY["modes"].items():
        path, steps = ("replayed", 20_000) if mode["claim"]["replay"] != "none" else ("eager" if name == "eager" else "compiled", 2_000)
        assert mode["coverage"]["steps_walked"] == steps
        assert mode["coverage"]["shares"]["num_steps"] == {path: 1.0}


def test_what_the_ledger_costs_is_what_was_measured() -> None:
    text = (ROOT / "docs" / "methodology.md").read_text(encoding="utf-8")
    for row in json.loads((STUDIES / "h200-proof" / "ledger.json").read_text(encoding="utf-8"))["rows"]:
        counter, ledger = (_median_and_quartiles(row.get(key)) for key in ("counter_us", "ledger_us"))
        cells = [row["mode"], str(row["batch"]), f"{row['plain_us']:.0f}", counter, ledger, f"{row['account_us']:.0f}"]
        assert f"| {' | '.join(cells)} |" in text


def test_ready_times_of_the_start_up_study_are_quoted_right() -> None:
    text = (ROOT / "docs" / "methodology.md").read_text(encoding="utf-8")
    modes = json.loads((STUDIES / "h200-startup" / "study.json").read_text(encoding="utf-8"))["modes"]
    for name, mode in modes.items():
        assert f"| `{name}` | {' | '.join(_ready(mode['startup'].get(cache)) for cache in CACHES)} |" in text


def test_phases_of_every_kept_start_close_and_compiled_modes_were_started_three_times_from_each_state() -> None:
    for file in (STUDIES / "h200-startup" / "warmup").glob("*.json"):
        starts = json.loads(file.read_text(encoding="utf-8"))["data"]["starts"]
        caches = [start["cache"] for start in starts]
        assert [caches.count(cache) for cache in CACHES] == [3, 3, 0 if file.stem in ("eager", "cuda_graph") else 3]
        assert all(abs(start["unaccounted_s"]) <= 0.0001 * start["ready_s"] for start in starts)


def _ready(entry: dict[str, Any] | None) -> str:
    if entry is None:
        return "–"
    return f"{entry['ready_s']:.1f} ({entry['low_s']:.1f} to {entry['high_s']:.1f})" + ("" if entry["proved"] else ", refuted")


def _of_bandwidth(bytes_per_s: float | None) -> str:
    return "–" if bytes_per_s is None else f"{100 * bytes_per_s / BANDWIDTH:.0f} %"


def _median_and_quartiles(values: list[float] | None) -> str:
    return "–" if values is None else f"{values[1]:.1f} ({values[0]:.1f} to {values[2]:.1f})"
