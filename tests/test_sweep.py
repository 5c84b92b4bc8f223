"""sweep, end to end: two cells measured on the CPU, one parent and two children in MLflow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stages.core.records.base import read_json

PACKAGE_ROOT = Path(__file__).resolve().parents[1]


def run(build: Path, *arguments: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    outside = {"OPMODE_BUILD": str(build / "build"), "MLFLOW_TRACKING_URI": f"sqlite:///{build / 'mlflow.db'}", "COLUMNS": "160"}
    command = [sys.executable, "-m", "stages.sweep", *arguments]
    return subprocess.run(
        command, cwd=PACKAGE_ROOT, env=os.environ | outside, capture_output=True, text=True, timeout=timeout_s, check=False
    )


BAD_ARGUMENTS = (
    "mode=nope",
    "model=tiny,typo",
    "model=",
    "model=[",
    "model=tiny,",
    "=3",
    "measure.load.duration_=5",
    "+seed=1",
    "modes=[eager]",
)


@pytest.mark.parametrize("argument", BAD_ARGUMENTS)
def test_wrong_name_or_key_stops_before_any_cell_without_a_traceback(tmp_path: Path, argument: str) -> None:
    found = run(tmp_path, "-m", argument, timeout_s=100)
    assert found.returncode == 2
    (line,) = found.stderr.splitlines()
    assert line.startswith("error: ")
    assert argument in line
    assert not list((tmp_path / "build").glob("sweeps/*/cell_*/cell.json"))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy:DeprecationWarning")
def test_two_cells_become_two_children_of_one_parent(tmp_path: Path) -> None:
    from mlflow.tracking import MlflowClient

    arguments = ("model=tiny", "trace=smoke", "measure=smoke", "device=cpu", "mode=eager,compile")
    found = run(tmp_path, "-m", *arguments, timeout_s=880)
    assert found.returncode == 0, found.stdout + found.stderr
    (sweep,) = (tmp_path / "build" / "sweeps").iterdir()
    assert [read_json(sweep / f"cell_{number}" / "cell.json")["status"] for number in range(2)] == ["ok", "ok"]
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    runs = client.search_runs([client.get_experiment_by_name("opmode").experiment_id])
    parent = next(run for run in runs if run.data.tags["kind"] == "sweep")
    cells = {run.info.run_name: run for run in runs if run.data.tags.get("mlflow.parentRunId") == parent.info.run_id}
    assert set(cells) == {"mode=eager", "mode=compile"}
    assert all(run.data.metrics["steady_state/sequence_s"] > 0 for run in cells.values())


def test_cell_that_breaks_is_recorded_and_the_others_go_on(tmp_path: Path) -> None:
    found = run(tmp_path, "-m", "model=tiny", "measure=smoke", "trace=smoke", "precision=fp99,fp98", timeout_s=100)
    assert found.returncode == 1
    (sweep,) = (tmp_path / "build" / "sweeps").iterdir()
    assert [read_json(sweep / f"cell_{number}" / "cell.json")["status"] for number in range(2)] == ["failed", "failed"]
    assert "fp98" in found.stdout
