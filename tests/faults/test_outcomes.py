"""Every fault of the list has a planted test, a healthy twin and a row in the documentation; the table says what became of each."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from stages.workers.probes.registry import PROBES
from tests.faults.documented import is_as_documented, rows
from tests.faults.listed import FAULTS, FREED_POINTER, HIDES_MUTATION, HOST_BRANCH, PLANTED, WRONG_WHEN_BUSY
from tests.faults.outcomes import table
from tests.workers.small_study import ROOT

NAMES = ("test_planted_faults", "test_faulty_models", "test_faults_on_gpu", "test_packages", "test_answers_under_load")
ON_CUDA = (FREED_POINTER, HOST_BRANCH)
OF_THE_ISSUE = {
    *("stale_token", "frozen_position", "position_off_by_one", "zeroed_cache_slot", "lost_cache_write", "stale_adapter"),
    *("output_overwritten", "padding_leak", "generator_not_registered", "captured_branch", "weights_swapped", "package_of_planned_sizes"),
}


def marked(kind: str) -> set[str]:
    tests = [value for name in NAMES for value in vars(importlib.import_module(f"tests.faults.{name}")).values()]
    marks = [mark for test in tests for mark in getattr(test, "pytestmark", []) if hasattr(mark, "name")]
    parameters = [value for mark in marks if mark.name == "parametrize" for value in mark.args[1]]
    marks += [mark for value in parameters for mark in getattr(value, "marks", ())]
    return {fault for mark in marks if mark.name == kind for fault in mark.args}


@pytest.mark.parametrize("kind", ["fault", "twin"])
def test_every_fault_is_planted_and_has_a_healthy_twin(kind: str) -> None:
    assert marked(kind) == set(FAULTS)


def test_every_fault_is_documented_with_its_probe_and_check() -> None:
    listed = {one.words: (one.probe, one.check) for one in (*PLANTED.values(), HIDES_MUTATION)}
    assert {words: (row.probe, row.check) for words, row in rows().items()} == listed
    text = (ROOT / "docs" / "methodology.md").read_text(encoding="utf-8")
    for one in ON_CUDA:
        assert f"{one.words} (`{one.probe}`)" in text
    assert {one.probe for one in (*PLANTED.values(), HIDES_MUTATION, *ON_CUDA)} <= {probe.name for probe in PROBES}
    assert WRONG_WHEN_BUSY in FAULTS


def test_faults_that_captures_are_known_for_are_among_them() -> None:
    assert set(PLANTED) >= OF_THE_ISSUE


def row(**changes: Any) -> dict[str, Any]:
    reason = "teacher_forced: teacher_forced_logits 1.4 (1.5e-06) on decode/1 | more"
    found = {"kind": "fault", "test": "test_a[stale]", "outcome": "detected", "verdict": "wrong", "on": "a GPU", "torch": "2"}
    return {"faults": [FAULTS[0]], "reason": reason, **found, **changes}


def test_table_counts_and_lists_faults_then_twins() -> None:
    twin = row(kind="twin", test="test_b", outcome="RAISES", faults=list(FAULTS[:2]))
    missed = row(test="test_c", outcome="MISSED", faults=[FAULTS[1]])
    of_all = row(kind="twin", test="test_e", outcome="raises nothing", faults=list(FAULTS))
    lines = table([twin, of_all, row(), missed, row(test="test_d", outcome="not run", faults=[FAULTS[2]])]).splitlines()
    assert lines[2] == f"1 of 2 tests that plant a fault detected it ({len(FAULTS)} faults); 1 of 2 healthy twins raise nothing."
    assert lines[6] == (
        f"| {FAULTS[0]} | fault: a[stale] | wrong | teacher_forced: teacher_forced_logits 1.4 (1.5e-06) on decode/1 \\| more "
        "| detected | a GPU | 2 |"
    )
    assert [line.split(" | ")[4] for line in lines[7:]] == ["RAISES", "MISSED", "RAISES", "not run", "raises nothing"]
    assert lines[-1].startswith(f"| {len(FAULTS)} of these | twin: e |")


def test_value_apart_from_the_documented_one_is_told() -> None:
    from stages.core.records.correctness import Check

    fault = PLANTED["stale_token"]
    check = Check(name=fault.check, subject="decode/1", verdict="fail", value=1.5, limit=1.6e-6, num_calls=6, probe=fault.probe)
    assert is_as_documented(fault, [check])
    assert not is_as_documented(fault, [check.model_copy(update={"value": 0.14})])
    counted = PLANTED["captured_branch"]
    steps = check.model_copy(update={"name": counted.check, "probe": counted.probe, "value": 3.0, "limit": 0.0})
    assert is_as_documented(counted, [steps])
    assert not is_as_documented(counted, [steps.model_copy(update={"value": 2.0})])
