"""What a study folder says as runs, without MLflow."""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.core.errors import UserError
from stages.tracking import metrics, runs
from tests.tracking.study_folder import example, write_json, write_study, write_text


def test_each_mode_has_its_times_under_the_names_of_the_readme() -> None:
    study = example()
    node = study["modes"]["compile"]
    found = metrics.of_mode(study, "compile")
    assert found["steady_state/decode_1_wall_us_p50"] == node["steady_state"]["decode"]["1"]["wall_us"]["median"]
    assert found["steady_state/sequence_speedup"] == node["steady_state"]["sequence"]["vs_baseline"]["speedup"]
    assert found["warmup/cold_ready_s"] == node["startup"]["cold"]["ready_s"]
    assert found["load/request_goodput"] == node["load"]["0.5"]["request_goodput"]
    assert found["load/8_request_goodput"] == node["load"]["8"]["request_goodput"]
    assert found["capture/confirmed"] == found["correctness/passed"] == 1.0


def test_refuted_mode_has_times_but_no_gain() -> None:
    study = example()
    found = metrics.of_mode(study, "cudagraph_trees")
    assert found["capture/confirmed"] == 0.0
    assert found["steady_state/decode_1_wall_us_p50"] > 0
    assert not [name for name in found if "speedup" in name or "break_even" in name]
    assert not [name for name in metrics.series_of_mode(study, "cudagraph_trees") if name.endswith("_completions")]


def test_completions_have_the_lifetime_as_step() -> None:
    study = example()
    points = study["modes"]["compile"]["lifetime"]["completions"]["2"]["cold"]
    line = dict(metrics.series_of_mode(study, "compile")["lifetime/2_cold_completions"])
    assert line[round(points[-1][0])] == points[-1][1]


def test_contrasts_of_every_factorial_are_metrics_of_the_parent() -> None:
    study = example()
    expected = study["attribution"]["inductor_manual"]["8"]["compiled_alone"]["value"]
    assert metrics.of_study(study)["attribution/inductor_manual_8_compiled_alone_us"] == expected


def test_every_run_has_the_axes_of_the_compare_page(tmp_path: Path) -> None:
    published = runs.of_folder(write_study(tmp_path))
    for run in (published.parent, *published.modes.values()):
        assert {"model", "mode", "torch", "gpu", "driver", "precision", "trace", "shapes"} <= run.params.keys()
    assert published.modes["compile"].params["mode.name"] == "compile"


def test_status_of_a_mode_is_the_status_of_its_run(tmp_path: Path) -> None:
    study = example(("eager", "compile", "dynamo", "max_autotune"))
    study["modes"]["compile"] |= {"status": "failed", "reason": "warmup: it broke"}
    study["modes"]["dynamo"] |= {"status": "skipped"}
    found = runs.of_folder(write_study(tmp_path, study)).modes
    assert [run.status for run in found.values()] == ["FINISHED", "FAILED", "KILLED", "FINISHED"]
    assert "it broke" in found["compile"].tags["reason"]
    assert found["max_autotune"].tags["status"] == "unavailable"


def test_records_of_an_earlier_study_are_not_published(tmp_path: Path) -> None:
    folder = write_study(tmp_path)
    before = runs.of_folder(folder)
    write_json(
        folder / "steady_state" / "autotune_manual.json",
        {"started_at": "2030-01-01T00:00:00+00:00", "ended_at": "2030-01-02T00:00:00+00:00"},
    )
    write_json(folder / "warmup" / "dynamo.json", {"started_at": "2030-01-01T00:00:00+00:00", "ended_at": "2030-01-02T00:00:00+00:00"})
    assert runs.of_folder(folder) == before


def test_duration_is_the_sum_of_the_records_and_not_their_span(tmp_path: Path) -> None:
    published = runs.of_folder(write_study(tmp_path))
    compiled = published.modes["compile"]
    assert compiled.end_ms - compiled.start_ms == (60 + 30 + 10 + 5) * 1000
    assert published.parent.end_ms - published.parent.start_ms == (4 * 105 + 60) * 1000


def test_key_changes_with_the_study_and_not_with_the_report(tmp_path: Path) -> None:
    write_study(tmp_path)
    before = runs.hashes(runs.of_folder(tmp_path))
    write_text(tmp_path / "report.html", "another layout")
    assert runs.hashes(runs.of_folder(tmp_path)) == before
    study = example()
    study["modes"]["eager"]["startup"]["cold"]["ready_s"] += 1
    write_json(tmp_path / "study.json", study)
    assert runs.hashes(runs.of_folder(tmp_path))["study"] != before["study"]


def test_note_is_the_report_without_images_that_would_not_resolve(tmp_path: Path) -> None:
    note = runs.of_folder(write_study(tmp_path)).parent.tags["mlflow.note.content"]
    assert "Run compile." in note
    assert "figures/" not in note


def test_folder_without_a_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="must exist"):
        runs.of_folder(tmp_path)
