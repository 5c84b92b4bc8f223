"""Faults of real captures on CUDA, each caught by its probe through the public command; healthy twins raise nothing."""

from __future__ import annotations

from typing import Any

import pytest

from stages.core.records.correctness import Answers
from tests.faults.planted_tree import PlantedTree, failed, planted_tree, why

pytestmark = pytest.mark.gpu
IDLE = {"known_answers", "custom_ops", "unplanned_size"}
"""Random weights, no custom operator, nothing but static inputs."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> PlantedTree:
    return planted_tree(tmp_path_factory.mktemp("gpu"), "cuda_graph", "cudagraph_trees", device="cuda")


def verdicts(answers: Answers) -> dict[str, str]:
    return {check.name: check.verdict for check in answers.checks}


def freed(frees: bool) -> dict[str, Any]:
    return {"_target_": "stages.modes.planted_captures.FreedPointer", "replay": "manual", "frees": frees}


def of_kind(kind: str) -> dict[str, Any]:
    return {"_target_": "stages.models.faulty.Faulty", "kind": kind}


def test_healthy_capture_raises_nothing_and_says_what_it_keeps(tree: PlantedTree) -> None:
    answers = tree.checked("cuda_graph")
    assert failed(answers) == set(), why(answers)
    assert {run.name for run in answers.probes if run.verdict == "not_run"} == IDLE
    found = {check.name: check for check in answers.checks}
    for name, reason in (("weights_by_pointer", "stale"), ("attribute_followed", "stale"), ("host_work_done", "left out")):
        assert found[name].verdict == "reported"
        assert reason in found[name].reason
    assert "refused" in found["branch_taken"].reason


def test_healthy_trees_raise_nothing_and_follow_new_addresses(tree: PlantedTree) -> None:
    answers = tree.checked("cudagraph_trees")
    assert failed(answers) == set(), why(answers)
    assert {run.name for run in answers.probes if run.verdict == "not_run"} == IDLE
    found = verdicts(answers)
    assert {found[name] for name in ("weights_by_pointer", "weights_restored", "attribute_followed", "branch_taken")} == {"pass"}


def test_freed_captured_pointer_is_caught_by_the_churned_allocator(tree: PlantedTree) -> None:
    answers = tree.checked("freed_pointer", **freed(frees=True))
    assert "allocator_churn" in failed(answers), why(answers)


def test_captured_pointer_that_is_kept_raises_nothing(tree: PlantedTree) -> None:
    answers = tree.checked("kept_pointer", **freed(frees=False))
    assert failed(answers) == set(), why(answers)


def test_branch_of_the_capture_is_caught_by_the_logits(tree: PlantedTree) -> None:
    answers = tree.checked("host_branch", of_kind("BranchesOnHost"), _target_="stages.modes.captured.CapturedEager", replay="manual")
    assert "teacher_forced" in failed(answers), why(answers)


def test_custom_operator_that_hides_a_mutation_is_wrong_under_trees(tree: PlantedTree) -> None:
    answers = tree.checked("cudagraph_trees", of_kind("HidesMutation"))
    assert {"custom_ops", "teacher_forced"} <= failed(answers), why(answers)
