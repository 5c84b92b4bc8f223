"""Another thread: the same bits pass, another rounding is a finding, another answer fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from stages.workers.probes import other_thread
from stages.workers.probes.bench import set_up
from tests.workers.conftest import MakeService, node


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


def found(make_service: MakeService, change: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, Any]:
    service = make_service("tiny")
    own, step = threading.current_thread(), service.steps["decode/2"]

    def run() -> tuple[torch.Tensor, torch.Tensor]:
        logits, following = step()
        return (logits if threading.current_thread() is own else change(logits)), following

    service.steps["decode/2"] = run
    return {one["name"]: one for one in other_thread.PROBE.run(set_up(service, "fp32", node("mode", "eager"), 6, 1))}


@pytest.mark.parametrize(
    ("change", "verdict"),
    [(lambda logits: logits, "pass"), (lambda logits: logits * (1 + 2e-7), "reported"), (lambda logits: logits * 1.01, "fail")],
    ids=["same", "rounded", "wrong"],
)
def test_bits_rounding_and_answers(change: Callable[[torch.Tensor], torch.Tensor], verdict: str, make_service: MakeService) -> None:
    checks = found(make_service, change)
    assert checks["other_thread"]["verdict"] == verdict
    assert checks["back_in_main_thread"]["verdict"] == "pass"


def test_refusal_of_the_thread_fails_where_nothing_belongs_to_a_thread(make_service: MakeService) -> None:
    def refuse(logits: torch.Tensor) -> torch.Tensor:
        raise AssertionError("not this thread")

    check = found(make_service, refuse)["other_thread"]
    assert (check["verdict"], check["reason"]) == ("fail", "AssertionError: not this thread")
