"""AOTInductor packages of real torch: without any check of shapes one takes another batch and answers wrong, and the probe sees it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from stages.core.build import build
from stages.core.records.correctness import Check
from stages.modes.aot_inductor import AotInductor, PackagedStep
from stages.workers.probes import unplanned_size
from stages.workers.probes.bench import Bench, set_up
from stages.workers.service import Service
from stages.workers.starting import _make_ready
from tests.faults.conftest import Tell
from tests.faults.listed import PLANTED
from tests.workers.conftest import node, plan_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("needs_packages"),
]
FAULT = PLANTED["package_of_planned_sizes"]


@pytest.fixture(scope="module")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("packages")


@torch.no_grad()
def bench(caches: Path, monkeypatch: pytest.MonkeyPatch, device: str) -> Bench:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(caches))
    monkeypatch.delenv("AOTI_RUNTIME_CHECK_INPUTS", raising=False)
    torch.set_num_threads(1)
    model = build(node("model", "tiny") | {"max_batch": 4, "capture_sizes": [4]}, "model")
    mode = build(node("mode", "aot_inductor"), "mode")
    service = Service(model.load(device, "fp32"), model, mode, plan_for([4], [32], model.context_tokens), device, "fp32")
    _make_ready(service)
    return set_up(service, "fp32", node("mode", "eager"), 6, 1)


@torch.no_grad()
def checked(found: Bench) -> dict[str, Any]:
    (document,) = unplanned_size.PROBE.run(found)
    return document | {"probe": unplanned_size.PROBE.name}


@pytest.mark.twin(FAULT.words)
def test_shape_without_a_package_is_served_by_the_baseline_path(
    caches: Path, monkeypatch: pytest.MonkeyPatch, device: str, tell: Tell
) -> None:
    found = bench(caches, monkeypatch, device)
    assert isinstance(found.service.mode, AotInductor)
    document = checked(found)
    tell([Check(**document)], FAULT.probe)
    assert document["verdict"] == "pass", document
    assert found.service.num_baseline_calls() == 1


@pytest.mark.fault(FAULT.words)
def test_package_fed_another_batch_size_is_caught(caches: Path, monkeypatch: pytest.MonkeyPatch, device: str, tell: Tell) -> None:
    found = bench(caches, monkeypatch, device)

    def unchecked(step: PackagedStep, *inputs: Any) -> Any:
        """The only package, whatever the shapes."""
        (package,) = step._packages.values()
        return package(*inputs)

    monkeypatch.setattr(PackagedStep, "__call__", unchecked)
    document = checked(found)
    tell([Check(**document)], FAULT.probe)
    assert document["verdict"] == "fail", document
    assert document["value"] is None or document["value"] > 0.1
