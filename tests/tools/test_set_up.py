"""What a user meets before anything else: an interpreter, a compiler or an environment that will not do."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "set_up.py"


@pytest.fixture
def set_up() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def project_copy(folder: Path, lock: str) -> dict[str, Any]:
    """The script in a folder of its own, with a lock that needs no index."""
    (folder / "tools").mkdir()
    (folder / "tools" / "set_up.py").write_text(SCRIPT.read_text())
    (folder / "requirements.lock").write_text(lock)
    return runpy.run_path(str(folder / "tools" / "set_up.py"))


@pytest.mark.parametrize("version", [(3, 10, 13), (3, 14, 0)])
def test_unsupported_python_is_named_with_the_range(
    version: tuple[int, ...], set_up: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    with pytest.raises(SystemExit, match="2"):
        set_up["main"]("none")
    assert f"must be 3.11 to 3.13; got {version[0]}.{version[1]} (" in capsys.readouterr().err


def test_missing_compiler_is_said_before_anything_is_made(
    tmp_path: Path, set_up: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(SystemExit, match="2"):
        set_up["main"](str(tmp_path / "env"))
    assert "found no no-such-compiler" in capsys.readouterr().err
    assert not (tmp_path / "env").exists()


def test_lock_is_installed_until_it_succeeds_and_again_when_it_changes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    main = project_copy(tmp_path, "./not-there.whl\n")["main"]
    with pytest.raises(SystemExit, match="2"):
        main(".venv")
    assert "exit status 1" in capfd.readouterr().err
    lock = tmp_path / "requirements.lock"
    for text in ("# nothing to install\n", "# still nothing\n"):
        lock.write_text(text)
        main(".venv")
        assert "installing requirements.lock" in capfd.readouterr().out
        main(".venv")
        assert capfd.readouterr().out == ""


def test_environment_of_the_user_is_only_checked(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True)
    before = sorted(tmp_path.rglob("*"))
    command = ["make", "-s", "venv", f"VENV={tmp_path / 'env'}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no packaging" in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_running_environment_meets_every_range(set_up: dict[str, Any]) -> None:
    assert set_up["faults"]() == []
