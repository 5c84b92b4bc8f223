"""Small functions under a mode: held as a step is, or refused with the reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from stages.core.build import build
from stages.workers.probes import data_branch, host_work, module_attribute, sampling
from stages.workers.probes.bench import set_up
from stages.workers.probes.held_function import held_or_refusal, keeps_python_state
from stages.workers.probes.probe import Probe
from stages.workers.service import Service
from tests.faults.planted import Planted
from tests.workers.conftest import MakeService, node

CLAIM = {key: value for key, value in node("mode", "eager").items() if key not in ("_target_", "replay", "transform")}


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


def regional() -> object:
    return build(node("mode", "compile_regional") | {"backend": "eager", "transform": "dynamo"}, "mode")


PROBES = [sampling.PROBE, module_attribute.PROBE, host_work.PROBE, data_branch.PROBE]


@pytest.mark.parametrize("probe", PROBES, ids=lambda probe: probe.name)
def test_mode_of_layers_takes_no_function_and_says_so(probe: Probe, make_service: MakeService) -> None:
    service = make_service("tiny")
    bench = set_up(service, "fp32", node("mode", "eager"), 6, 1)
    service.mode = regional()  # type: ignore[assignment]
    (document,) = probe.run(bench)
    assert document["verdict"] == "not_run"
    assert "needs a model with its layers" in document["reason"]


def test_what_the_mode_raises_is_the_refusal(make_service: MakeService) -> None:
    def broken(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("first line\nsecond line")

    assert held_or_refusal(make_service("tiny"), broken, torch.zeros(1)) == (None, "RuntimeError: first line")


def test_held_step_reads_its_static_inputs_and_gives_a_copy(make_service: MakeService) -> None:
    held, refused = held_or_refusal(make_service("tiny"), lambda x: x, torch.zeros(2))
    assert held is not None
    assert refused == ""
    before = held.step()
    held.inputs[0].fill_(3)
    assert (before.tolist(), held.step().tolist()) == ([0, 0], [3, 3])


@pytest.mark.parametrize(
    ("transform", "replay", "keeps"),
    [("none", "none", False), ("none", "manual", True), ("inductor", "trees", False), ("aot", "none", True), ("aot", "trees", False)],
)
def test_captures_and_packages_keep_python_state(transform: str, replay: str, keeps: bool, make_service: MakeService) -> None:
    service: Service = make_service("tiny")

    service.mode = Planted(**CLAIM, transform=transform, replay="none")
    service.mode.replay = replay
    assert keeps_python_state(service) is keeps
