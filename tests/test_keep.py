"""keep: a whole copy under a name, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from stages.core.errors import UserError
from stages.keep import keep
from tests.tracking.study_folder import example, write_study, write_text


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    study = example(("eager", "compile"))
    named = {"name": study["name"], "model": study["model"]["name"], "trace": study["trace"]["name"], "modes": ["eager", "compile"]}
    params = {**study["choices"], **named, "precision": study["model"]["precision"]}
    monkeypatch.setenv("OPMODE_ROOT", str(tmp_path))
    write_study(tmp_path / "reports" / "latest", study)
    write_text(tmp_path / "params.yaml", yaml.safe_dump(params))
    write_text(tmp_path / "dvc.lock", "schema: '2.0'\n")
    return tmp_path


def test_kept_study_has_the_records_and_what_they_came_from(root: Path) -> None:
    target = keep("ours")
    copied = {str(file.relative_to(target)) for file in target.rglob("*") if file.is_file()}
    assert {"study.json", "report.md", "warmup/eager.json", "figures/lifetime.svg", "params.yaml", "dvc.lock"} <= copied
    assert (target / "params.yaml").read_text() == (root / "params.yaml").read_text()
    assert [path.name for path in (root / "reports" / "studies").iterdir()] == ["ours"]


def test_study_that_lies_elsewhere_is_kept_without_the_dvc_lock_of_reports_latest(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "reports" / "latest").rename(root / "elsewhere")
    monkeypatch.setenv("OPMODE_STUDY", str(root / "elsewhere"))
    target = keep("ours")
    assert (target / "study.json").read_text() == (root / "elsewhere" / "study.json").read_text()
    assert (target / "params.yaml").is_file()
    assert not (target / "dvc.lock").exists()


def test_choices_of_another_file_are_kept_as_params_yaml(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "params.yaml").rename(root / "h200_steady.yaml")
    monkeypatch.setenv("OPMODE_PARAMS", str(root / "h200_steady.yaml"))
    target = keep("ours")
    assert (target / "params.yaml").read_text() == (root / "h200_steady.yaml").read_text()
    assert not (target / "h200_steady.yaml").exists()


def test_records_of_an_earlier_study_are_not_kept(root: Path) -> None:
    latest = root / "reports" / "latest"
    stale = [f"{stage}/dynamo.json" for stage in ("warmup", "capture", "load", "correctness")] + ["steady_state/autotune_manual.json"]
    for name in stale:
        write_text(latest / name, "{}")
    target = keep("ours")
    assert not any((target / name).exists() for name in stale)
    assert all((latest / name).exists() for name in stale)
    assert (target / "steady_state" / "inductor_manual.json").exists()


def test_name_that_is_taken_is_refused(root: Path) -> None:
    keep("ours")
    with pytest.raises(UserError, match="must not be taken"):
        keep("ours")


@pytest.mark.parametrize("name", ["../elsewhere", "latest", "", ".hidden", "a b", "a/b"])
def test_name_that_is_no_folder_name_is_refused(root: Path, name: str) -> None:
    with pytest.raises(UserError, match="must be letters"):
        keep(name)


def test_study_of_other_params_is_refused(root: Path) -> None:
    params = yaml.safe_load((root / "params.yaml").read_text())
    write_text(root / "params.yaml", yaml.safe_dump(params | {"modes": ["eager"]}))
    with pytest.raises(UserError, match=r"modes: must be what the study was made with"):
        keep("ours")
    assert not (root / "reports" / "studies" / "ours").exists()


@pytest.mark.parametrize("key", ["model", "trace"])
def test_study_of_another_model_or_trace_is_refused(root: Path, key: str) -> None:
    params = yaml.safe_load((root / "params.yaml").read_text())
    write_text(root / "params.yaml", yaml.safe_dump(params | {key: "another"}))
    with pytest.raises(UserError, match=f"{key}: must be what the study was made with"):
        keep("ours")


def test_without_a_study_there_is_nothing_to_keep(root: Path) -> None:
    (root / "reports" / "latest" / "study.json").unlink()
    with pytest.raises(UserError, match="must exist"):
        keep("ours")
