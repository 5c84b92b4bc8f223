"""Faults of real captures on CUDA, each caught by its probe through the public command; healthy twins raise nothing."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stages.core.records.correctness import Answers
from tests.ahead import ONE_AT_A_TIME
from tests.faults.conftest import Tell
from tests.faults.listed import FREED_POINTER, HIDES_MUTATION, HOST_BRANCH
from tests.faults.planted_tree import failed, planted_tree, why

pytestmark = pytest.mark.gpu
IDLE = {"known_answers", "custom_ops", "unplanned_size"}
"""Random weights, no custom operator, nothing but static inputs."""


def measured(mode: str, model: dict[str, Any] | None, keys: dict[str, Any], home: Path) -> Answers:
    """What `correctness` found, in a project of its own."""
    with ONE_AT_A_TIME:
        tree = planted_tree(home, "cuda_graph", "cudagraph_trees", device="cuda")
    return tree.checked(mode, model, **keys)


def checks(mode: str, model: dict[str, Any] | None = None, **keys: Any) -> pytest.MarkDecorator:
    """The test's `ahead` is what `correctness` found."""
    return pytest.mark.ahead(partial(measured, mode, model, keys))


def verdicts(answers: Answers) -> dict[str, str]:
    return {check.name: check.verdict for check in answers.checks}


def freed(frees: bool) -> dict[str, Any]:
    return {"_target_": "stages.modes.planted_captures.FreedPointer", "replay": "manual", "frees": frees}


def of_kind(kind: str) -> dict[str, Any]:
    return {"_target_": "stages.models.faulty.Faulty", "kind": kind}


@pytest.mark.twin(FREED_POINTER.words, HOST_BRANCH.words)
@checks("cuda_graph")
def test_healthy_capture_raises_nothing_and_says_what_it_keeps(ahead: Answers, tell: Tell) -> None:
    tell(ahead.checks)
    assert failed(ahead) == set(), why(ahead)
    assert {run.name for run in ahead.probes if run.verdict == "not_run"} == IDLE
    found = {check.name: check for check in ahead.checks}
    for name, reason in (("weights_by_pointer", "stale"), ("attribute_followed", "stale"), ("host_work_done", "left out")):
        assert found[name].verdict == "reported"
        assert reason in found[name].reason
    assert "refused" in found["branch_taken"].reason


@pytest.mark.twin(HIDES_MUTATION.words)
@checks("cudagraph_trees")
def test_healthy_trees_raise_nothing_and_follow_new_addresses(ahead: Answers, tell: Tell) -> None:
    tell(ahead.checks)
    assert failed(ahead) == set(), why(ahead)
    assert {run.name for run in ahead.probes if run.verdict == "not_run"} == IDLE
    found = verdicts(ahead)
    assert {found[name] for name in ("weights_by_pointer", "weights_restored", "attribute_followed", "branch_taken")} == {"pass"}


@pytest.mark.fault(FREED_POINTER.words)
@checks("freed_pointer", **freed(frees=True))
def test_freed_captured_pointer_is_caught_by_the_churned_allocator(ahead: Answers, tell: Tell) -> None:
    tell(ahead.checks, FREED_POINTER.probe)
    assert "allocator_churn" in failed(ahead), why(ahead)


@pytest.mark.twin(FREED_POINTER.words)
@checks("kept_pointer", **freed(frees=False))
def test_captured_pointer_that_is_kept_raises_nothing(ahead: Answers, tell: Tell) -> None:
    tell(ahead.checks)
    assert failed(ahead) == set(), why(ahead)


@pytest.mark.fault(HOST_BRANCH.words)
@checks("host_branch", of_kind("BranchesOnHost"), _target_="stages.modes.captured.CapturedEager", replay="manual")
def test_branch_of_the_capture_is_caught_by_the_logits(ahead: Answers, tell: Tell) -> None:
    tell(ahead.checks, HOST_BRANCH.probe)
    assert "teacher_forced" in failed(ahead), why(ahead)


@pytest.mark.fault(HIDES_MUTATION.words)
@checks("cudagraph_trees", of_kind("HidesMutation"))
def test_custom_operator_that_hides_a_mutation_is_wrong_under_trees(ahead: Answers, tell: Tell) -> None:
    tell(ahead.checks, HIDES_MUTATION.probe)
    assert {"custom_ops", "teacher_forced"} <= failed(ahead), why(ahead)


@pytest.mark.twin(HIDES_MUTATION.words)
@checks("cudagraph_trees", of_kind("DeclaresMutation"))
def test_custom_operator_that_declares_its_mutation_is_right_under_trees(ahead: Answers, tell: Tell) -> None:
    tell(ahead.checks)
    assert failed(ahead) == set(), why(ahead)
    assert {run.verdict for run in ahead.probes if run.name == HIDES_MUTATION.probe} == {"pass"}


@pytest.mark.twin(HOST_BRANCH.words)
@checks("host_branch_launched", of_kind("BranchesOnHost"))
def test_branch_of_the_host_that_nothing_captures_raises_nothing(ahead: Answers, tell: Tell) -> None:
    tell(ahead.checks)
    assert failed(ahead) == set(), why(ahead)
