"""Which writes of a custom operator its schema declares: in lists, by keyword, and where a number is none."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from stages.workers.probes.custom_ops import Watch


@torch.library.custom_op("watched::second", mutates_args=())
def second(tensors: list[Tensor], more: Tensor) -> Tensor:
    """Writes into the second of the list, and into what came by keyword."""
    tensors[1].add_(1)
    more.fill_(float("nan"))
    return more.new_zeros(())


@torch.library.custom_op("watched::declared", mutates_args={"x"})
def declared(x: Tensor, y: Tensor) -> Tensor:
    """Writes into the first, as it says."""
    x.add_(1)
    return y.new_zeros(())


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_writes_in_lists_and_by_keyword_are_counted(watch: Watch) -> None:
    with watch:
        second([torch.zeros(2), torch.zeros(2)], more=torch.zeros(3))
    assert watch.calls == {"watched.second.default": 1}
    assert watch.writes == {"watched.second.default": 2}


def test_declared_writes_and_numbers_that_are_none_are_no_finding(watch: Watch) -> None:
    with watch:
        for _ in range(2):
            declared(torch.zeros(2), torch.full((2,), float("nan")))
    assert (watch.calls, watch.writes) == ({"watched.declared.default": 2}, {})


def test_operators_of_torch_are_not_watched(watch: Watch) -> None:
    with watch:
        torch.zeros(2).add_(1)
    assert (watch.calls, watch.writes) == ({}, {})
