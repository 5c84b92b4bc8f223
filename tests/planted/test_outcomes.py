"""Every fault of the list has a planted test and a healthy twin, and the table says what became of both."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from tests.planted.outcomes import FAULTS, merged, table

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


def test_methodology_says_how_each_fault_is_told() -> None:
    text = (ROOT / "docs" / "methodology.md").read_text(encoding="utf-8")
    _, _, table = text.partition("| planted | told as |")
    rows = [line.replace("`", "").replace('"', "") for line in table.split("\n\n")[0].splitlines()[2:]]
    assert len(rows) == len(FAULTS)
    assert [fault for fault in FAULTS if not any(row.startswith(f"| {fault[:32]}") for row in rows)] == []
