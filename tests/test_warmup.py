"""warmup: a start counts as cold or warm only where counters, phases and listing agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stages.core.cache_proof import prove
from stages.core.records.base import read
from stages.core.records.startup import CacheUse, Phases, Startup, WarmupRecord
from stages.rotated_starts import order
from stages.warmup import as_start
from tests.workers.small_study import SmallStudy, write_study

COLD = {"fx_graph_misses": 4, "num_graphs_compiled": 4, "num_files_before": 0, "num_files_after": 60, "num_kernels_after": 8}
WARM = {"fx_graph_hits": 4, "num_files_before": 60, "num_files_after": 60, "num_kernels_before": 8, "num_kernels_after": 8}

BUILT = {"num_packages_built": 3, "num_packages_loaded": 3, "num_graphs_compiled": 3, "num_files_after": 60, "num_kernels_after": 9}
LOADED = {"num_packages_loaded": 3, "num_files_before": 60, "num_files_after": 60, "num_kernels_before": 9, "num_kernels_after": 9}


@pytest.mark.parametrize(
    ("cache", "transform", "use", "verdict"),
    [
        ("cold", "inductor", COLD, "confirmed"),
        ("cold", "inductor", {**COLD, "num_files_before": 3}, "refuted"),
        ("cold", "inductor", {**COLD, "num_kernels_before": 1}, "refuted"),
        ("cold", "inductor", {**COLD, "fx_graph_hits": 1}, "refuted"),
        ("cold", "inductor", {**COLD, "aot_autograd_hits": 1}, "refuted"),
        ("cold", "inductor", {**COLD, "num_files_after": 0}, "not_proven"),
        ("cold", "inductor", {}, "not_proven"),
        ("warm", "inductor", WARM, "confirmed"),
        ("warm", "inductor", {"aot_autograd_hits": 4, "num_files_before": 60}, "confirmed"),
        ("warm", "inductor", {**WARM, "fx_graph_misses": 1}, "refuted"),
        ("warm", "inductor", {**WARM, "fx_graph_bypasses": 1}, "refuted"),
        ("warm", "inductor", {**WARM, "num_graphs_compiled": 1}, "refuted"),
        ("warm", "inductor", {**WARM, "num_kernels_after": 9}, "refuted"),
        ("warm", "inductor", {"num_files_before": 60}, "not_proven"),
        ("artifact", "inductor_autotune", WARM, "confirmed"),
        ("artifact", "inductor", {**WARM, "num_kernels_before": 0}, "confirmed"),
        ("artifact", "inductor_autotune", COLD, "refuted"),
        ("cold", "aot", BUILT, "confirmed"),
        ("cold", "aot", {**BUILT, "num_kernels_before": 1}, "refuted"),
        ("cold", "aot", {**BUILT, "num_packages_built": 0}, "not_proven"),
        ("warm", "aot", LOADED, "confirmed"),
        ("warm", "aot", {**LOADED, "num_packages_built": 1}, "refuted"),
        ("warm", "aot", {**LOADED, "num_packages_loaded": 0}, "not_proven"),
        ("artifact", "aot", {**LOADED, "num_kernels_before": 0}, "confirmed"),
        ("artifact", "aot", {**LOADED, "num_packages_built": 1, "num_graphs_compiled": 1}, "refuted"),
        ("cold", "none", {}, "confirmed"),
        ("warm", "dynamo", {}, "confirmed"),
        ("warm", "none", {"fx_graph_hits": 1}, "refuted"),
    ],
)
def test_cache_state_is_proved_by_counters_and_listing(cache: str, transform: str, use: dict[str, int], verdict: str) -> None:
    found, sentence = prove(cache, CacheUse(**use), Phases(kernel_compile_s=0.5), transform)
    assert found == verdict
    assert sentence


def test_start_that_claims_warm_and_compiled_says_what_it_compiled() -> None:
    use = CacheUse(**{**WARM, "fx_graph_misses": 1, "num_graphs_compiled": 1, "num_kernels_after": 10}, new_kernels={"attend.cubin": 2})
    assert prove("warm", use, Phases(), "inductor") == (
        "refuted",
        "claims warm, but 1 graphs missed, 1 graphs compiled, 2 kernels compiled (2 x attend.cubin)",
    )


def test_artifact_that_torch_cannot_read_refutes_the_start() -> None:
    verdict, sentence = prove("artifact", CacheUse(**WARM), Phases(), "inductor", artifact_bytes=0)
    assert (verdict, "could not read" in sentence) == ("refuted", True)


def test_kernels_that_an_artifact_lacks_are_named() -> None:
    verdict, sentence = prove(
        "artifact", CacheUse(**WARM, num_kernel_compiles=7), Phases(kernel_compile_s=12.6), "inductor", artifact_bytes=9
    )
    assert (verdict, "kernels 12.60 s: compiled again" in sentence) == ("confirmed", True)
    _, loaded = prove("artifact", CacheUse(**WARM), Phases(kernel_compile_s=3.0), "inductor", artifact_bytes=9)
    assert loaded == "4 graph hits, 0 AOT hits, 0 misses, kernels 3.00 s", "a GPU's kernels are in the artifact: none was compiled by C++"


@pytest.mark.parametrize("cache", ["warm", "artifact"])
def test_start_from_filled_caches_that_tunes_again_is_refuted(cache: str) -> None:
    found = prove(cache, CacheUse(**WARM), Phases(autotune_s=15.46), "inductor_autotune", artifact_bytes=9)
    assert found == ("refuted", f"claims {cache}, but kernels tuned for 15.5 s")
    assert prove(cache, CacheUse(**WARM), Phases(autotune_s=0.4), "inductor_autotune", artifact_bytes=9)[0] == "confirmed"


def test_remote_cache_refutes_every_start() -> None:
    start = as_start("cold", report(cache_state={"remote_caches": {"fx_graph": True}}), "inductor")
    assert (start.verdict, start.proved, start.proof) == ("refuted", False, "a remote compile cache is on")


def report(**changes: Any) -> dict[str, Any]:
    return {
        "ready_s": 10.0,
        "first_request_s": 10.5,
        "phases": {"import_s": 3.0, "load_s": 1.0, "dynamo_s": 2.0, "inductor_s": 3.9},
        "calls_s": {"decode/1": [5.0, 0.1, 0.1]},
        "cache_use": COLD,
        "missing": "",
        **changes,
    }


def test_what_no_phase_claims_is_unaccounted() -> None:
    start = as_start("cold", report(), "inductor")
    assert start.unaccounted_s == pytest.approx(0.1)
    assert (start.proved, start.proof) == (True, "0 files before, 4 misses, 0 hits, 60 files after")


def test_start_whose_phases_cannot_be_seen_is_not_proved() -> None:
    start = as_start("cold", report(missing="ChromiumEventLogger not found"), "inductor")
    assert (start.verdict, start.proved, start.proof) == ("not_proven", False, "phases unknown: ChromiumEventLogger not found")


@pytest.mark.parametrize(("ready_s", "verdict"), [(9.9, "confirmed"), (10.4, "confirmed"), (10.6, "not_proven"), (9.3, "not_proven")])
def test_start_whose_phases_do_not_close_within_five_per_cent_is_not_proved(ready_s: float, verdict: str) -> None:
    start = as_start("cold", report(ready_s=ready_s), "inductor")
    assert (start.verdict, start.proved) == (verdict, verdict == "confirmed")
    assert ("phases miss" in start.proof) == (verdict == "not_proven")


def run_again(small: SmallStudy, *modes: str) -> list[Startup]:
    found = []
    for mode in modes:
        status, text = small.run("warmup", "--mode", mode)
        assert status == 0, text
        record = read(small.folder / "warmup" / f"{mode}.json", WarmupRecord)
        assert record.data, record.reason
        found.append(record.data)
    return found


def test_starts_in_rounds_take_the_modes_in_turn_and_the_stage_joins_them(tmp_path: Path) -> None:
    counts = ("measure.warmup.cold_starts=2", "measure.warmup.warm_starts=0", "measure.warmup.artifact_starts=1")
    small = write_study(tmp_path, "eager", "dynamo", overrides=counts)
    status, text = small.run("rotated_starts")
    assert status == 0, text
    made = [line.split(" ", 1)[1] for line in text.splitlines()]
    assert made == ["round 1: eager", "round 1: dynamo", "round 2: dynamo", "round 2: eager"]
    parts = len(list((tmp_path / "build" / "partial").glob("*/*.json")))
    assert parts == 4
    num_workers = len(list((tmp_path / "build" / "logs").iterdir()))
    eager, dynamo = run_again(small, "eager", "dynamo")
    assert len(list((tmp_path / "build" / "logs").iterdir())) == num_workers, "the stage measured nothing again"
    assert [start.cache for start in eager.starts] == [start.cache for start in dynamo.starts] == ["cold", "cold"], "nothing to carry"
    assert all(start.proved and start.started_at for start in (*eager.starts, *dynamo.starts))
    assert eager.starts[0].started_at <= dynamo.starts[0].started_at <= dynamo.starts[1].started_at <= eager.starts[1].started_at
    status, text = small.run("rotated_starts")
    assert (status, text) == (0, "")


def test_each_round_begins_with_the_next_mode() -> None:
    assert list(order(["a", "b", "c"], 4))[::3] == [(0, "a"), (1, "b"), (2, "c"), (3, "a")]
    assert sorted(order(["a", "b"], 2)) == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]


def test_middle_way_is_measured_through_the_stage_and_stands_in_the_report(tmp_path: Path) -> None:
    small = write_study(tmp_path, "eager", "dynamo", overrides=("measure.warmup.warm_starts=0", "measure.warmup.middle_way=true"))
    eager, dynamo = run_again(small, "eager", "dynamo")
    assert eager.middle_way is None
    assert dynamo.middle_way
    assert (dynamo.middle_way.supported, dynamo.middle_way.recompiled) == (True, 0)
    assert dynamo.middle_way.first_served_s
    assert dynamo.middle_way.switched_s
    assert 0 < dynamo.middle_way.first_served_s < dynamo.middle_way.switched_s
    for stage in ("attribution", "report"):
        status, text = small.run(stage)
        assert status == 0, text
    assert "Eager while compiling" in (small.folder / "report.md").read_text(encoding="utf-8")
    assert "Eager while compiling" in (small.folder / "report.html").read_text(encoding="utf-8")
