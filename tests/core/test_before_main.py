"""A Python without the project's packages, and Ctrl-C while it imports, end in one line; nothing else of Python's errors changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = sorted(path.stem for path in (ROOT / "stages").glob("*.py") if path.stem not in ("__init__", "pytest_plugin"))


def bare(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Python with the standard library and this project's own files alone."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-S", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_names_the_package_the_interpreter_and_the_remedy(name: str) -> None:
    done = bare("-m", f"stages.{name}", "--help")
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert f": must be installed in the Python that runs stages.{name}; got {sys.executable} without it. " in line
    assert f"Run `.venv/bin/python -m stages.{name}` (`make venv` makes it)" in line


def test_the_package_that_is_missing_is_named() -> None:
    assert bare("-m", "stages.compare", "A", "B").stderr.startswith("error: pydantic: must be installed")


def test_a_program_that_imports_the_package_keeps_its_own_errors(tmp_path: Path) -> None:
    (tmp_path / "serve.py").write_text("import stages.watch\n")
    for arguments in (["serve.py", "-m", "stages.compare"], ["-m", "serve"], ["-m", "stages.workers.child"]):
        done = bare(*arguments, folder=tmp_path)
        assert done.returncode == 1
        assert done.stderr.startswith("Traceback")


def test_a_command_that_does_not_exist_is_python_s_own_error() -> None:
    done = bare("-m", "stages.nothing")
    assert (done.returncode, done.stderr) == (1, f"{sys.executable}: No module named stages.nothing\n")


@pytest.mark.parametrize("code", ["raise KeyboardInterrupt", "exec('raise KeyboardInterrupt')"])
def test_ctrl_c_while_a_command_imports_is_one_line(code: str, tmp_path: Path) -> None:
    (tmp_path / "hydra.py").write_text(f"{code}\n")
    (tmp_path / "numpy.py").write_text(f"{code}\n")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "stages.report"]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "error: interrupted before anything was done; run the same command again\n")
