"""The gate inside pytest: a service's CI fails on a new fallback and passes on equal studies."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.python_path import python_path
from tests.tracking.study_folder import example, write_json

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def studies(tmp_path: Path) -> dict[str, Any]:
    """A baseline on disk, and its document to change."""
    before = example(("eager", "compile"))
    write_json(tmp_path / "a.json", before)
    return copy.deepcopy(before)


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    """Pytest in an empty folder of a service, with the plugin."""
    command = [sys.executable, "-m", "pytest", "-p", "stages.pytest_plugin", "-p", "no:cacheprovider", "--rootdir", ".", *arguments]
    environment = os.environ | python_path(ROOT)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def gate(folder: Path, after: dict[str, Any], *arguments: str) -> tuple[int, str]:
    write_json(folder / "b.json", after)
    return run(folder, "--opmode-study", "b.json", "--opmode-baseline", "a.json", *arguments)


def test_equal_studies_pass(tmp_path: Path, studies: dict[str, Any]) -> None:
    status, text = gate(tmp_path, studies, "-v")
    assert status == 0, text
    assert "opmode[compile] PASSED" in text
    assert "opmode[new fallbacks] PASSED" in text


def test_new_fallback_fails_whatever_the_averages_say(tmp_path: Path, studies: dict[str, Any]) -> None:
    evidence = studies["modes"]["compile"]["evidence"]
    evidence["path_counts"] = {**evidence["path_counts"], "eager": 3}
    studies["modes"]["compile"]["startup"]["cold"]["ready_s"] /= 3
    status, text = gate(tmp_path, studies)
    assert status == 1, text
    assert "compile: share of steps eager, not compiled: 0 -> " in text
    assert "Traceback" not in text


def test_studies_that_cannot_be_compared_are_a_usage_error(tmp_path: Path, studies: dict[str, Any]) -> None:
    studies["model"]["name"] = "other"
    status, text = gate(tmp_path, studies)
    assert status == pytest.ExitCode.USAGE_ERROR
    assert "model.name: must be the same in both studies" in text


def test_plugin_that_is_not_asked_does_nothing(tmp_path: Path) -> None:
    (tmp_path / "test_service.py").write_text("def test_it():\n    assert True\n", encoding="utf-8")
    status, text = run(tmp_path)
    assert (status, "1 passed" in text) == (0, True)
