"""Serve eager, compile meanwhile, switch: the steps after the switch are the mode's, and nothing compiles again."""

from __future__ import annotations

import time
from typing import Any

import pytest
import torch

from stages.core.records.startup import MiddleWay
from stages.workers.middle_way import adopt, switch
from stages.workers.service import Service
from tests.workers.conftest import MakeService, node


@pytest.fixture(autouse=True)
def _no_grad() -> Any:
    """As a worker does; a guard on the mode of autograd would compile again."""
    with torch.no_grad():
        yield
    torch._dynamo.reset()


def switched(service: Service, mode: dict[str, Any]) -> MiddleWay:
    return MiddleWay(**switch(service, mode, "fp32", 1, time.monotonic() - 5))


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("mode", ["dynamo", pytest.param("compile", marks=pytest.mark.slow)])
def test_eager_serves_until_the_switch_and_nothing_compiles_after_it(mode: str, make_service: MakeService) -> None:
    service = make_service("tiny")
    found = switched(service, node("mode", mode))
    assert (found.supported, found.reason, found.recompiled) == (True, "", 0)
    assert found.num_steps_before > 0
    assert found.switched_s is not None
    assert found.switched_s > 5
    assert found.longest_gap_s is not None
    assert found.switch_gap_s is not None
    assert 0 < found.switch_gap_s <= found.longest_gap_s
    assert found.extra_bytes == sum(tensor.numel() * tensor.element_size() for tensor in (*service.keys, *service.values))
    assert service.mode.name == mode


def test_answers_after_the_switch_are_those_of_eager(make_service: MakeService) -> None:
    service, compiled, eager = make_service("tiny"), make_service("tiny", "dynamo"), make_service("tiny")
    for each in (service, eager):
        each.fill(8, torch.Generator().manual_seed(0))
    adopt(service, compiled)
    for _ in range(3):
        assert torch.equal(service.decode(2)[0], eager.decode(2)[0])
    assert torch.equal(service.tokens, eager.tokens)


def test_mode_that_breaks_while_compiling_is_said_so_and_eager_stays(make_service: MakeService) -> None:
    def breaks(*_: Any) -> Any:
        raise RuntimeError("out of registers")

    torch._dynamo.register_backend(breaks, name="breaks")  # type: ignore[arg-type]
    service = make_service("tiny")
    found = switched(service, {**node("mode", "dynamo"), "backend": "breaks"})
    assert not found.supported
    assert "out of registers" in found.reason
    assert service.mode.name == "eager"


def test_trees_are_not_claimed(make_service: MakeService) -> None:
    found = switched(make_service("tiny"), node("mode", "cudagraph_trees"))
    assert (found.supported, "CUDAGraph Trees" in found.reason) == (False, True)
