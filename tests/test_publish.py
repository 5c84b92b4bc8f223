"""publish: the command line."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tracking.study_folder import example, write_study

PACKAGE_ROOT = Path(__file__).resolve().parents[1]


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stages.publish", *arguments]
    return subprocess.run(
        command, cwd=PACKAGE_ROOT, env=os.environ | {"OPMODE_ROOT": str(root)}, capture_output=True, text=True, check=False
    )


def test_latest_and_kept_studies_are_published_quietly_into_the_database_of_the_project(tmp_path: Path) -> None:
    write_study(tmp_path / "reports" / "latest", example(("eager",)))
    write_study(tmp_path / "reports" / "studies" / "kept", example(("eager", "compile")))
    found = run(tmp_path, "--all")
    assert (found.returncode, found.stderr) == (0, "")
    assert [line.split(", ")[-1] for line in found.stdout.splitlines()] == ["2 new or changed", "3 new or changed"]
    assert (tmp_path / "mlflow.db").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"mlflow.db", "mlartifacts", "reports", "build"}


def test_unknown_study_and_missing_sweep_are_one_line(tmp_path: Path) -> None:
    for arguments in (["--study", "nobody"], ["--sweep", "nowhere"], []):
        found = run(tmp_path, *arguments)
        assert (found.returncode, found.stderr.count("\n")) == (2, 1)
        assert found.stderr.startswith("error: ")


@pytest.mark.parametrize("port", ["abc", "99999", "0x10", "taken"])
def test_ui_on_a_port_that_is_none_or_taken_is_one_line(tmp_path: Path, port: str) -> None:
    write_study(tmp_path / "reports" / "latest", example(("eager",)))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        given = str(taken.getsockname()[1]) if port == "taken" else port
        command = ["make", "-C", str(PACKAGE_ROOT), "--no-print-directory", "ui", "VENV=none", f"PORT={given}"]
        variables = {"OPMODE_ROOT": str(tmp_path), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    assert (
        done.stderr.splitlines()[0] == f"error: PORT: must be a free port of this machine; got {given}. Choose another: make ui PORT=5001"
    )
    assert "MLflow UI on" not in done.stdout
