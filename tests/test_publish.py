"""publish: the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
