"""A mode that answers right alone and wrong in a batch is caught by the sample of its requests, through the public command."""

from __future__ import annotations

import pytest

from tests.faults.planted_tree import PlantedTree, fault, planted_tree


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> PlantedTree:
    return planted_tree(tmp_path_factory.mktemp("busy"))


def test_wrong_tokens_under_load_are_faults(tree: PlantedTree) -> None:
    (run,) = tree.served("wrong_when_busy", **fault("wrong_when_busy")).runs
    assert run.answers
    assert max(int(size) for size in run.batch_histogram) > 1
    assert (run.answers.verdict, run.answers.num_requests) == ("wrong", 6)
    assert run.answers.num_faults > 0
    assert run.answers.first
    assert run.answers.first.is_fault
    assert run.answers.first.given_up > 4 * run.answers.first.noise  # type: ignore[operator]


def test_healthy_twin_gets_the_tokens_of_eager(tree: PlantedTree) -> None:
    (run,) = tree.served("healthy", **fault("healthy")).runs
    assert run.answers
    assert (run.answers.verdict, run.answers.num_faults, run.answers.num_requests) == ("correct", 0, 6)
    assert run.answers.num_tokens > 20
