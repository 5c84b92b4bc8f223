"""Models that a compiler gets wrong: the probe names the operator, and the answers show that it matters."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.conftest import Tell
from tests.faults.documented import is_as_documented
from tests.faults.listed import HIDES_MUTATION
from tests.faults.planted_tree import PlantedTree, failed, fault, planted_tree, why

CLAIM = {"transform": "inductor", "documented_at": "nowhere"}


def of_kind(kind: str) -> dict[str, Any]:
    return {"_target_": "stages.models.faulty.Faulty", "kind": kind}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, device: str) -> PlantedTree:
    return planted_tree(tmp_path_factory.mktemp("faulty"), "compile", device=device)


@pytest.mark.fault(HIDES_MUTATION.words)
def test_custom_operator_that_hides_a_mutation_is_named(tree: PlantedTree, tell: Tell) -> None:
    answers = tree.checked("hides", of_kind("HidesMutation"), **fault("healthy", **CLAIM))
    tell(answers.checks, HIDES_MUTATION.probe)
    assert failed(answers) == {"custom_ops"}, why(answers)  # run as it is, the answers are right
    (check,) = [check for check in answers.checks if check.probe == "custom_ops"]
    assert (check.value, check.limit) == (2, 0)
    assert "planted.doubled" in check.reason
    assert is_as_documented(HIDES_MUTATION, answers.checks)


@pytest.mark.twin(HIDES_MUTATION.words)
def test_custom_operator_that_declares_its_mutation_raises_nothing(tree: PlantedTree, tell: Tell) -> None:
    answers = tree.checked("declares", of_kind("DeclaresMutation"), **fault("healthy", **CLAIM))
    tell(answers.checks)
    assert failed(answers) == set(), why(answers)
    assert {run.verdict for run in answers.probes if run.name == "custom_ops"} == {"pass"}


@pytest.mark.slow
@pytest.mark.fault(HIDES_MUTATION.words)
def test_compiler_computes_before_the_mutation_that_it_was_not_told(tree: PlantedTree, tell: Tell) -> None:
    answers = tree.checked("compile", of_kind("HidesMutation"))
    tell(answers.checks, HIDES_MUTATION.probe)
    assert {"custom_ops", "teacher_forced"} <= failed(answers), why(answers)


@pytest.mark.slow
@pytest.mark.twin(HIDES_MUTATION.words)
def test_compiler_that_was_told_of_the_mutation_is_right(tree: PlantedTree, tell: Tell) -> None:
    answers = tree.checked("compile", of_kind("DeclaresMutation"))
    tell(answers.checks)
    assert failed(answers) == set(), why(answers)
