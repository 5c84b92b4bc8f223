"""study.json: its names, its size, and the stage that writes the answer from files."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from stages import attribution
from stages.analysis import answers, reading
from stages.analysis.reading import StudyRecords
from stages.analysis.study import limited, study_document
from stages.core.atomic import write_json
from stages.core.errors import UserError
from stages.core.records import base
from tests.analysis.hand_made import Spec, example_records, records_of, times


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    records = example_records()
    return study_document(records, answers.answer(records))


def write_study(folder: Path, records: StudyRecords) -> Path:
    """Write records as the stages do, and params.yaml; returns params.yaml."""
    write_json(folder / "environment.json", dict(records.environment))
    base.write(folder / "trace" / "plan.json", records.plan)
    for record in records.all():
        if record.started_at:
            base.write(folder / record.stage / f"{record.item}.json", record)
    (folder / "config" / "factorial").mkdir(parents=True)
    for mode, config in records.configs.items():
        (folder / "config" / f"{mode}.yaml").write_text(yaml.safe_dump(config))
    for name, cells in records.factorials.items():
        (folder / "config" / "factorial" / f"{name}.yaml").write_text(yaml.safe_dump({"name": name, "modes": cells}))
    params = {key: value for key, value in vars(records.params).items() if key not in ("slo", "gate")}
    (folder / "params.yaml").write_text(yaml.safe_dump(params))
    return folder / "params.yaml"


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    params = write_study(tmp_path, example_records())
    monkeypatch.setenv("OPMODE_STUDY", str(tmp_path))
    monkeypatch.setenv("OPMODE_PARAMS", str(params))
    monkeypatch.setattr("sys.argv", ["attribution"])
    return tmp_path


def test_names_are_those_of_the_schema(document: dict[str, Any]) -> None:
    assert document["schema_version"] == 1
    assert document["baseline"] == "eager"
    assert document["trace"].keys() >= {"name", "requests", "steps", "shapes", "length_factor"}
    mode = document["modes"]["compile_cuda_graph"]
    parts = ["status", "claim", "evidence", "startup", "memory", "steady_state", "load", "bottleneck", "correctness", "lifetime", "floor"]
    assert mode.keys() >= set(parts)
    assert mode["evidence"]["path_counts"] == {"replayed": 1990, "recorded": 10}
    assert mode["startup"]["cold"]["ready_s"] == 48.2
    assert mode["startup"]["cold"]["high_s"] == 49.9
    assert mode["steady_state"]["decode"]["8"]["vs_baseline"]["verdict"] == "faster"
    assert mode["steady_state"]["prefill"]["512"]["wall_us"]["n"] == 480
    assert mode["load"]["2"]["slo_attainment"] == 1.0
    assert mode["lifetime"]["break_even_s"].keys() == {"cold", "warm", "artifact"}
    assert document["attribution"]["inductor_manual"]["8"]["total"]["num_sets"] == 3
    assert document["attribution"]["inductor_manual"]["twins"]["of"] == 8
    assert document["verdict"]["recommended"]["86400"]["2"] == "compile_cuda_graph"
    assert "python -m stages.warmup --mode compile" in document["commands"]


def test_factorial_says_when_and_where_it_was_measured_and_times_say_of_which_they_are(document: dict[str, Any]) -> None:
    measured = document["attribution"]["inductor_manual"]["measured"]
    assert measured.keys() == {"started_at", "ended_at", "hostname", "gpu_uuid"}
    assert (measured["started_at"], measured["hostname"], measured["gpu_uuid"]) == ("2026-11-29T10:00:00Z", "gpu-box", "GPU-1234")
    assert document["modes"]["compile"]["steady_state"]["decode"]["1"]["factorial"] == "inductor_manual"


def test_heat_says_its_times_and_who_went_on() -> None:
    records = example_records()
    name, record = next(iter(records.steady_state.items()))
    assert record.data is not None
    late = {"status": "skipped", "reason": "number 3 of the heat"}
    cells = [cell.model_copy(update=late) if cell.mode == "eager" else cell for cell in record.data.cells]
    passes = [
        record.data.sequences[0].model_copy(update={"mode": mode, "sequence_s": s}) for mode, s in (("b", 2.0), ("a", 1.0), ("a", 3.0))
    ]
    data = record.data.model_copy(update={"heat": passes, "cells": cells})
    steady_state = {**records.steady_state, name: record.model_copy(update={"data": data})}
    records = replace(records, steady_state=steady_state)
    found = study_document(records, answers.answer(records))["attribution"][name]
    assert found["heat"] == {"b": 2.0, "a": 2.0}
    assert found["went_on"] == sorted({cell.mode for cell in cells} - {"eager"})


def test_factorial_without_a_heat_has_no_one_who_went_on(document: dict[str, Any]) -> None:
    assert all(found["went_on"] == [] for found in document["attribution"].values())


def test_the_baseline_states_what_could_be_saved_at_most(document: dict[str, Any]) -> None:
    entry = document["modes"]["eager"]["bottleneck"]["1"]
    assert entry["ceilings"]["replay_us"] == pytest.approx(entry["wall_us"] - entry["busy_us"])
    assert document["modes"]["compile"]["bottleneck"]["1"].get("ceilings") is None


def test_tails_are_shown_with_and_without_the_requests_a_capture_hit(document: dict[str, Any]) -> None:
    run = document["modes"]["eager"]["load"]["2"]
    assert (run["tpot_ms"]["n"], run["tpot_ms_without_hit"]["n"], run["num_hit"]) == (600, 599, 1)
    assert "requests" not in run


def test_a_mode_without_data_has_its_status_and_reason_and_no_numbers(document: dict[str, Any]) -> None:
    mode = document["modes"]["max_autotune"]
    assert mode["status"] == "unavailable"
    assert "CUDAGraph Trees need" in mode["reason"]
    assert mode["evidence"] is None
    assert mode["steady_state"] == {"decode": {}, "prefill": {}, "sequence": None}
    assert mode["lifetime"] is None


def test_numbers_are_finite_and_keys_are_strings(document: dict[str, Any]) -> None:
    def walk(value: Any) -> None:
        if isinstance(value, dict):
            assert all(isinstance(key, str) for key in value)
        if isinstance(value, float):
            assert math.isfinite(value)
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else []:
            walk(item)

    walk(document)
    assert len(json.dumps(document, allow_nan=False)) < 5_000_000


def test_a_document_over_the_limit_is_thinned_until_it_fits(document: dict[str, Any]) -> None:
    size = len(json.dumps(document, indent=1))
    found = limited(document, size * 3 // 4)
    assert len(json.dumps(found, indent=1)) <= size * 3 // 4
    full, thin = (entry["modes"]["eager"]["steady_state"]["decode"]["1"]["wall_us"] for entry in (document, found))
    assert (thin["median"], thin["ecdf"][0], thin["ecdf"][-1]) == (full["median"], full["ecdf"][0], full["ecdf"][-1])


def test_the_stage_writes_the_answer_of_the_records_on_disk(study: Path) -> None:
    attribution.main()
    found = reading.read_attribution(study)
    assert found.status == "ok"
    assert found.data is not None
    assert found.data.factorials == answers.answer(example_records()).factorials
    assert found.data.verdict.recommended["86400"]["2"].mode == "compile_cuda_graph"


def test_the_stage_takes_a_deleted_record_as_skipped(study: Path) -> None:
    (study / "load" / "compile.json").unlink()
    (study / "steady_state" / "inductor_trees.json").unlink()
    attribution.main()
    found = reading.read_attribution(study).data
    assert found is not None
    assert found.verdict.rejected["compile"].startswith("skipped: load: no record")
    assert found.factorials["inductor_trees"].cell_reasons["CR"].startswith("skipped: no record")


def test_measured_ceilings_give_a_floor(study: Path) -> None:
    file = study / "steady_state" / "inductor_trees.json"
    record = base.read_json(file)
    ceilings = {"bandwidth_bytes_per_s": 4.2e12, "operations_per_s": 7e14, "l2_bytes": 50_000_000}
    record["data"]["ceilings"] = ceilings | {"precision": "bf16", "copied_bytes": 1 << 30, "matrix_size": 8192}
    write_json(file, record)
    attribution.main()
    found = reading.read_attribution(study).data
    assert found is not None
    floor = found.modes["eager"].floor["decode/1"]
    assert floor.floor_us == pytest.approx(2.5e9 / 4.2e12 * 1e6, rel=0.05)


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("load/compile.json", "{", "must be JSON"),
        ("load/compile.json", "{}", "Field required"),
        ("load/compile.json", "[" * 100_000, "must be JSON"),
        ("config/compile.yaml", "model: {}\nmode: null", "compile.yaml:mode: must be a mapping"),
        ("config/compile.yaml", "model: [1]\nmode: {}", "compile.yaml:model: must be a mapping"),
        ("config/compile.yaml", "- 1", "must be a mapping"),
        ("config/factorial/inductor_manual.yaml", "modes: 3", "must map cell keys"),
    ],
)
def test_a_broken_file_is_the_users_to_fix(study: Path, name: str, text: str, match: str) -> None:
    (study / name).write_text(text)
    with pytest.raises(UserError, match=match):
        attribution.main()


@pytest.mark.parametrize("name", ["environment.json", "trace/plan.json", "config/compile.yaml"])
def test_a_missing_file_says_which_and_what_to_run(study: Path, name: str) -> None:
    (study / name).unlink()
    with pytest.raises(UserError, match="must exist"):
        attribution.main()


def test_a_cpu_study_of_one_set_without_load_still_gives_a_document() -> None:
    specs = {"eager": Spec(times(900, 1500, 9000)), "cuda_graph": Spec({}, status="unavailable", reason="a CPU has no CUDA graphs")}
    specs["eager"].goodput = {"recorded": 3.0}
    records = records_of(specs, {"m": {"E": "eager", "R": "cuda_graph"}}, num_sets=1, without=("load/eager",), arrival_rates=["recorded"])
    found = study_document(records, answers.answer(records))
    assert found["modes"]["cuda_graph"]["status"] == "unavailable"
    assert found["verdict"]["recommended"] == {}
    assert found["attribution"]["m"]["1"]["cell_us"].keys() == {"E"}
