"""Models that a compiler gets wrong: the probe names the operator, and the answers show that it matters."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.planted_tree import PlantedTree, failed, fault, planted_tree, why

CLAIM = {"transform": "inductor", "documented_at": "nowhere"}


def of_kind(kind: str) -> dict[str, Any]:
    return {"_target_": "stages.models.faulty.Faulty", "kind": kind}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> PlantedTree:
    return planted_tree(tmp_path_factory.mktemp("faulty"), "compile")


def test_custom_operator_that_hides_a_mutation_is_named(tree: PlantedTree) -> None:
    answers = tree.checked("hides", of_kind("HidesMutation"), **fault("healthy", **CLAIM))
    assert failed(answers) == {"custom_ops"}, why(answers)  # run as it is, the answers are right
    (check,) = [check for check in answers.checks if check.probe == "custom_ops"]
    assert (check.value, check.limit) == (2, 0)
    assert "planted.doubled" in check.reason


def test_custom_operator_that_declares_its_mutation_raises_nothing(tree: PlantedTree) -> None:
    answers = tree.checked("declares", of_kind("DeclaresMutation"), **fault("healthy", **CLAIM))
    assert failed(answers) == set(), why(answers)
    assert {run.verdict for run in answers.probes if run.name == "custom_ops"} == {"pass"}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "caught"), [("HidesMutation", {"custom_ops", "teacher_forced"}), ("DeclaresMutation", set())])
def test_compiler_computes_before_the_mutation_that_it_was_not_told(kind: str, caught: set[str], tree: PlantedTree) -> None:
    answers = tree.checked("compile", of_kind(kind))
    assert caught <= failed(answers), why(answers)
    assert bool(failed(answers)) == bool(caught), why(answers)
