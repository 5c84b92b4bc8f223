"""Every fault of the list has a planted test and a healthy twin, and the table says what became of both."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path

import pytest

from tests.planted.outcomes import FAULTS, merged, outcome_of, table

ROOT = Path(__file__).resolve().parents[2]
MODULES = [importlib.import_module(f"tests.planted.{name}") for name in ("test_planted_faults", "test_planted_on_gpu")]


def marked(kind: str) -> set[str]:
    tests = [value for module in MODULES for name, value in vars(module).items() if name.startswith("test_")]
    return {fault for test in tests for mark in getattr(test, "pytestmark", []) if mark.name == kind for fault in mark.args}


@pytest.mark.parametrize("kind", ["fault", "twin"])
def test_every_fault_is_planted_and_has_a_healthy_twin(kind: str) -> None:
    assert marked(kind) == set(FAULTS)


def row(test: str, outcome: str, kind: str = "fault") -> dict[str, object]:
    return {
        "faults": [FAULTS[0]],
        "kind": kind,
        "test": test,
        "outcome": outcome,
        "verdict": "refuted",
        "reason": "0 of 40 | steps",
        "seconds": 1.0,
        "on": "a GPU",
        "torch": "2",
    }


def test_table_lists_faults_then_twins_and_keeps_earlier_rows(tmp_path: Path) -> None:
    file = tmp_path / "faults.json"
    file.write_text(json.dumps({"rows": [row("test_a", "detected"), row("test_b", "raises nothing", "twin")]}))
    found = merged(file, [row("test_b", "not run", "twin"), row("test_a", "MISSED")])
    assert {one["test"]: one["outcome"] for one in found["rows"]} == {"test_a": "MISSED", "test_b": "raises nothing"}
    lines = table(found["rows"]).splitlines()
    assert lines[4] == f"| {FAULTS[0]} | fault: a | refuted | 0 of 40 \\| steps | MISSED | a GPU |"
    assert lines[5].endswith("| raises nothing | a GPU |")


@pytest.mark.parametrize(
    ("kind", "message", "when", "said"),
    [
        ("fault", "assert set() == {'a'}", "call", "MISSED"),
        ("fault", "AssertionError: size 2 is above the largest", "call", "MISSED"),
        ("fault", "Failed: DID NOT RAISE <class 'ValueError'>", "call", "MISSED"),
        ("twin", "assert ['held_output'] == []", "call", "RAISES"),
        ("fault", "torch.OutOfMemoryError: CUDA out of memory.", "call", "broke"),
        ("fault", "Failed: Timeout (>300.0s) from pytest-timeout.", "call", "broke"),
        ("twin", "assert False", "setup", "broke"),
        ("twin", "assert False", "teardown", "broke"),
    ],
)
def test_test_that_ended_in_anything_but_an_assertion_broke(kind: str, message: str, when: str, said: str) -> None:
    assert outcome_of(kind, "failed", message, when) == said
    assert outcome_of(kind, "passed", "", "call") in {"detected", "raises nothing"}


@pytest.mark.parametrize("outcomes", ["tests.planted.outcomes", "tests.faults.outcomes"])
@pytest.mark.parametrize(
    ("environment", "arguments", "says"),
    [
        ({"PLANTED_DEVICE": "nonsense"}, (), "PLANTED_DEVICE: must be cpu, or cuda where there is a GPU; got nonsense"),
        ({}, ("--processes", "2"), "--processes: needs pytest-xdist"),
        ({}, ("--out", "FILE"), "FILE"),
        ({}, ("--out", "BROKEN"), "must be JSON"),
        ({}, ("--out", "OTHER"), "must be the table of an earlier run"),
    ],
)
def test_what_would_lose_the_rows_is_refused_before_anything_runs(
    outcomes: str, environment: dict[str, str], arguments: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "FILE").write_text("")
    for name, text in (("BROKEN", "{"), ("OTHER", '{"rows": [1]}')):
        (tmp_path / name).mkdir()
        (tmp_path / name / "faults.json").write_text(text)
    monkeypatch.chdir(tmp_path)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(importlib.import_module("tests.planted.outcomes"), "find_spec", lambda _: None)
    module = importlib.import_module(outcomes)
    monkeypatch.setattr(pytest, "main", lambda *_, **__: pytest.fail("ran"))
    monkeypatch.setattr(sys, "argv", ["outcomes", *(arguments if "--out" in arguments else ("--out", "new", *arguments))])
    said: list[str] = []
    monkeypatch.setattr(argparse.ArgumentParser, "error", lambda _, text: said.append(text) or sys.exit(2))
    with pytest.raises(SystemExit):
        module.main()
    assert says in said[0]


def test_a_choice_that_matches_no_test_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("tests.faults.outcomes")
    monkeypatch.setattr(pytest, "main", lambda *_, **__: pytest.ExitCode.NO_TESTS_COLLECTED)
    monkeypatch.setattr(sys, "argv", ["outcomes", "--out", str(tmp_path), "--only", "nothing_at_all"])
    assert module.main() == pytest.ExitCode.NO_TESTS_COLLECTED
    assert list(tmp_path.iterdir()) == []


def test_methodology_says_how_each_fault_is_told() -> None:
    text = (ROOT / "docs" / "methodology.md").read_text(encoding="utf-8")
    _, _, table = text.partition("| planted | told as |")
    rows = [line.replace("`", "").replace('"', "") for line in table.split("\n\n")[0].splitlines()[2:]]
    assert len(rows) == len(FAULTS)
    assert [fault for fault in FAULTS if not any(row.startswith(f"| {fault[:32]}") for row in rows)] == []
