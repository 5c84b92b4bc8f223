"""Stage report, on a folder of records: one document, views from it alone, and errors that say what to do."""

from __future__ import annotations

import dataclasses
import json
import runpy
import sys
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from stages.analysis.reading import StudyRecords
from stages.core import atomic
from stages.core.records import base
from tests.analysis import hand_made


def write_records(records: StudyRecords, folder: Path) -> None:
    """The folder that these records were read from."""
    atomic.write_json(folder / "environment.json", dict(records.environment))
    base.write(folder / "trace" / "plan.json", records.plan)
    for mode, config in records.configs.items():
        atomic.write_text(folder / "config" / f"{mode}.yaml", OmegaConf.to_yaml(OmegaConf.create(dict(config))))
    for name, cells in records.factorials.items():
        text = OmegaConf.to_yaml(OmegaConf.create({"name": name, "cells": dict(cells)}))
        atomic.write_text(folder / "config" / "factorial" / f"{name}.yaml", text)
    for record in records.all():
        base.write(folder / record.stage / f"{record.item}.json", record)


def run(command: str, *arguments: str) -> int:
    """A command of this package in this process; its exit status."""
    sys.argv = [f"stages.{command}", *arguments]
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module(f"stages.{command}", run_name="__main__")
    return int(stopped.value.code or 0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    records = hand_made.example_records()
    study = tmp_path / "latest"
    write_records(records, study)
    params = tmp_path / "params.yaml"
    params.write_text(OmegaConf.to_yaml(OmegaConf.create(dataclasses.asdict(records.params))))
    monkeypatch.setenv("OPMODE_STUDY", str(study))
    monkeypatch.setenv("OPMODE_PARAMS", str(params))
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    return study


@pytest.mark.filterwarnings("ignore:.*found in sys.modules.*:RuntimeWarning")
def test_report_writes_its_files_prints_the_verdict_and_redraws(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("attribution") == 0
    assert run("report") == 0
    study = json.loads((folder / "study.json").read_text())
    assert study["modes"]["cudagraph_trees"]["evidence"]["verdict"] == "refuted"
    capsys.readouterr()
    assert run("report", "--print") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert study["verdict"]["sentence"] in printed
    assert "report.html" in printed
    before = {path: path.read_bytes() for path in [*folder.glob("report.*"), *folder.glob("figures/*"), folder / "metrics.json"]}
    for path in before:
        path.unlink()
    assert run("report", "--redraw", str(folder)) == 0
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.filterwarnings("ignore:.*found in sys.modules.*:RuntimeWarning")
def test_report_says_what_to_run_when_attribution_is_missing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("report") == 2
    assert "attribution.json: must exist" in capsys.readouterr().err
    assert not (folder / "study.json").exists()


@pytest.mark.filterwarnings("ignore:.*found in sys.modules.*:RuntimeWarning")
def test_printing_before_there_is_a_report_is_a_clear_error(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("report", "--print") == 2
    assert "study.json: must exist" in capsys.readouterr().err
