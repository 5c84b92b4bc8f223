"""Every path hangs from the project's root."""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.core import paths


def test_root_is_the_folder_that_holds_the_package() -> None:
    assert paths.root() == Path(__file__).resolve().parents[2]


def test_queued_experiment_works_in_the_root_that_dvc_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DVC_ROOT", str(tmp_path))
    assert (paths.latest(), paths.build()) == (tmp_path / "reports" / "latest", tmp_path / "build")
    assert paths.study("kept") == tmp_path / "reports" / "studies" / "kept"


def test_cell_of_a_sweep_works_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPMODE_STUDY", str(tmp_path / "study"))
    monkeypatch.setenv("OPMODE_BUILD", str(tmp_path / "build"))
    assert (paths.latest(), paths.build()) == (tmp_path / "study", tmp_path / "build")
