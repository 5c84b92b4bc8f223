"""A bug bundle of a mode with a planted fault: its script shows the fault in a fresh process, away from the project."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stages.bundle import packages_elsewhere
from tests.planted.conftest import Make
from tests.planted.planted_study import PlantedStudy

pytestmark = pytest.mark.timeout(900)
EXPECTED = "kernels by inductor, replay none, on every step"


def bundled(study: PlantedStudy, mode: str = "dynamo") -> Path:
    """Run the public command; the bundle's folder."""
    status, text = study.run("bundle", "--mode", mode)
    assert status == 0, text
    folder = Path(study.variables["OPMODE_BUILD"]) / "bundles" / mode
    assert (folder / "seen.txt").read_text().splitlines()[-1] or text
    return folder


def rerun(folder: Path, place: Path) -> subprocess.CompletedProcess[str]:
    """The script alone, copied elsewhere, with nothing of this project to find."""
    shutil.copytree(folder, place)
    command = [sys.executable, "-sP", str(place / "reproduce.py")]
    environment = {"PATH": "/usr/bin:/bin", **packages_elsewhere(os.environ)}
    return subprocess.run(command, cwd=place.parent, env=environment, capture_output=True, text=True, check=False, timeout=600)


def expected(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "expected.json").read_text()))


def test_refuted_mode_is_refuted_again_by_its_script_with_trace_and_profile(make: Make) -> None:
    study = make("compile", mode_class="IgnoredMode")
    study.captured("compile")
    folder = bundled(study, "compile")
    assert (expected(folder)["kind"], expected(folder)["expected"]) == ("refuted", EXPECTED)
    seen = (folder / "seen.txt").read_text()
    assert "compiled by eager, claimed inductor" in seen
    assert "the fault is there" in seen
    assert list((folder / "trace").glob("*.log"))
    assert json.loads((folder / "profile.json").read_text())["traceEvents"]
    assert json.loads((folder / "environment.json").read_text())["torch"] in (folder / "requirements.txt").read_text()
    source = (folder / "reproduce.py").read_text()
    assert "compiled by eager, claimed inductor" in source
    assert "class IgnoredMode" in (folder / "code" / "stages" / "modes" / "planted.py").read_text()


def test_mode_without_a_fault_has_no_bundle(make: Make) -> None:
    status, text = make().run("bundle", "--mode", "dynamo")
    assert status == 2
    assert "--mode: must have failed, been refuted, answered wrong or been slower" in text


def test_script_finds_the_packages_of_a_machine_that_names_them_in_pythonpath_and_not_the_project(tmp_path: Path) -> None:
    (tmp_path / "project" / "stages").mkdir(parents=True)
    given = [str(tmp_path / "project"), str(tmp_path / "packages"), "", "more"]
    kept = packages_elsewhere({"PYTHONPATH": os.pathsep.join(given)})["PYTHONPATH"]
    assert kept.split(os.pathsep) == [str(tmp_path / "packages"), str(Path("more").absolute())]
    assert packages_elsewhere({"PYTHONPATH": given[0]}) == packages_elsewhere({}) == {}


@pytest.mark.slow
def test_wrong_answers_are_wrong_again(make: Make, tmp_path: Path) -> None:
    study = make(mode_class="OffByOnePercent")
    assert study.checked("dynamo").data.verdict == "wrong"  # type: ignore[union-attr]
    folder = bundled(study)
    assert expected(folder)["kind"] == "wrong"
    done = rerun(folder, tmp_path / "elsewhere")
    assert done.returncode == 1, done.stderr
    assert "teacher_forced_logits on decode/1" in done.stdout


@pytest.mark.slow
def test_mode_that_is_slower_is_slower_again(make: Make, tmp_path: Path) -> None:
    study = make(mode_class="Sleeps", factorials=("inductor_manual",))
    study.plant_cell("dynamo", mode___target_="stages.modes.planted.Sleeps")
    study.timed("inductor_manual")
    for mode in ("eager", "dynamo"):
        study.captured(mode)
    folder = bundled(study)
    assert expected(folder)["kind"] == "slower"
    done = rerun(folder, tmp_path / "elsewhere")
    assert done.returncode == 1, done.stderr
    assert "times as fast" in done.stdout


@pytest.mark.slow
def test_mode_that_fails_fails_again_with_the_same_error(make: Make, tmp_path: Path) -> None:
    study = make(model_kind="Grows")
    assert study.captured("dynamo").status == "failed"
    folder = bundled(study)
    assert expected(folder)["kind"] == "failed"
    done = rerun(folder, tmp_path / "elsewhere")
    assert done.returncode == 1
    assert "FailOnRecompileLimitHit" in done.stderr


@pytest.mark.slow
def test_script_of_a_fault_that_was_removed_says_that_it_is_gone(make: Make, tmp_path: Path) -> None:
    study = make("compile", mode_class="IgnoredMode")
    study.captured("compile")
    folder = bundled(study, "compile")
    planted = folder / "code" / "stages" / "modes" / "planted.py"
    planted.write_text(planted.read_text().replace('backend="eager", mode="reduce-overhead"', 'backend="inductor"'))
    done = rerun(folder, tmp_path / "elsewhere")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the fault is not there" in done.stdout
