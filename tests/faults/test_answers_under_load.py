"""A mode that answers right alone and wrong in a batch is caught by the sample of its requests, through the public command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stages.core.records.load import ServedAnswers
from tests.faults.listed import WRONG_WHEN_BUSY
from tests.faults.planted_tree import PlantedTree, fault, planted_tree


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory, device: str) -> PlantedTree:
    return planted_tree(tmp_path_factory.mktemp("busy"), device=device)


def told(answers: ServedAnswers, record_property: Callable[[str, Any], None]) -> None:
    """Keeps the verdict and the first fault."""
    record_property("verdict", answers.verdict)
    counts = f"{answers.num_faults} faults in {answers.num_tokens} tokens of {answers.num_requests} requests"
    record_property("reason", f"answers under load: {counts}; first: {answers.first}" if answers.num_faults else "")


@pytest.mark.fault(WRONG_WHEN_BUSY)
def test_wrong_tokens_under_load_are_faults(tree: PlantedTree, record_property: Callable[[str, Any], None]) -> None:
    (run,) = tree.served("wrong_when_busy", **fault("wrong_when_busy")).runs
    assert run.answers
    told(run.answers, record_property)
    assert max(int(size) for size in run.batch_histogram) > 1
    assert (run.answers.verdict, run.answers.num_requests) == ("wrong", 6)
    assert run.answers.num_faults > 0
    assert run.answers.first
    assert run.answers.first.is_fault
    assert run.answers.first.given_up > 4 * run.answers.first.noise  # type: ignore[operator]


@pytest.mark.twin(WRONG_WHEN_BUSY)
def test_healthy_twin_gets_the_tokens_of_eager(tree: PlantedTree, record_property: Callable[[str, Any], None]) -> None:
    (run,) = tree.served("healthy", **fault("healthy")).runs
    assert run.answers
    told(run.answers, record_property)
    assert (run.answers.verdict, run.answers.num_faults, run.answers.num_requests) == ("correct", 0, 6)
    assert run.answers.num_tokens > 20
