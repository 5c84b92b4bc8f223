"""Each planted fault is caught by a named probe, in this process and through the public command; healthy twins raise nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from stages.core import digest
from stages.core.build import build
from stages.core.records.correctness import Check
from stages.workers.checking import check
from stages.workers.probes.registry import PROBES
from stages.workers.service import Service
from tests.faults.conftest import Tell
from tests.faults.documented import is_as_documented
from tests.faults.listed import PLANTED, in_this_process, through_the_command
from tests.faults.planted import Planted, uneven_calls
from tests.faults.planted_tree import RANK, PlantedTree, failed, fault, planted_tree, why
from tests.workers.conftest import node, plan_for
from tests.workers.small_study import ROOT

NO_PROBES = {"__init__", "bench", "held_function", "divergence", "rounding", "probe", "registry"}
PROBE_MODULES = {path.stem for path in (ROOT / "stages/workers/probes").glob("*.py")} - NO_PROBES
ALL = [one.words for one in PLANTED.values()]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory, device: str) -> PlantedTree:
    return planted_tree(tmp_path_factory.mktemp("planted"), device=device)


@pytest.mark.parametrize(("name", "probe"), through_the_command())
def test_planted_fault_is_caught_through_the_command(name: str, probe: str, planted: PlantedTree, tell: Tell) -> None:
    answers = planted.checked(name, **fault(name))
    tell(answers.checks, probe)
    assert answers.verdict == "wrong"
    assert probe in failed(answers), why(answers)
    assert next(run.verdict for run in answers.probes if run.name == probe) == "fail"


@pytest.mark.twin(*ALL)
@pytest.mark.parametrize(
    "keys", [pytest.param({"replay": "none"}, marks=pytest.mark.slow), {"replay": "manual"}], ids=["launched", "replayed"]
)
def test_healthy_twin_raises_nothing_and_all_probes_run(keys: dict[str, str], planted: PlantedTree, tell: Tell) -> None:
    name = f"healthy-{keys['replay']}"
    answers = planted.checked(name, **fault(name, **keys))
    tell(answers.checks)
    assert failed(answers) == set(), why(answers)
    assert answers.verdict == "correct"
    assert [run.name for run in answers.probes] == [probe.name for probe in PROBES]
    idle = {"known_answers", "custom_ops"} | ({"unplanned_size"} if keys["replay"] == "manual" else set())
    assert {run.name for run in answers.probes if run.verdict == "not_run"} == idle  # random weights know no answers
    assert answers.num_probes_run == len(PROBES) - len(idle)


@pytest.mark.parametrize(("name", "probe"), in_this_process())
def test_fault_is_caught_by_its_probe(name: str, probe: str, device: str, tell: Tell) -> None:
    checks = checked(name, "eager", device)
    tell(checks, probe)
    assert probe in {one.probe for one in checks if one.verdict == "fail"}
    if device == "cpu":
        assert is_as_documented(PLANTED[name], checks)


@pytest.mark.twin(*ALL)
def test_healthy_twin_in_this_process_raises_nothing(device: str, tell: Tell) -> None:
    checks = checked("healthy", "eager", device)
    tell(checks)
    assert [one for one in checks if one.verdict == "fail"] == []


def test_baseline_that_disagrees_with_itself_fails_and_hides_nothing(device: str) -> None:
    baseline = {"_target_": "stages.modes.eager.Eager", **claim()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stages.modes.eager.Eager.transformed", lambda self, function, num_shapes: uneven_calls(function))
        found = checked("uneven_calls", baseline, device)
    assert {"eager_repeats", "repeated_calls"} <= {one.name for one in found if one.verdict == "fail"}


def test_code_hash_of_the_stage_covers_every_probe() -> None:
    names = digest._imports_of("stages.workers.probes.registry")
    assert {f"stages.workers.probes.{module}" for module in PROBE_MODULES} <= set(names)
    assert "stages.workers.probes.registry" in digest._imports_of("stages.workers.checking")


def test_every_file_of_a_probe_is_registered_once() -> None:
    assert len({probe.name for probe in PROBES}) == len(PROBES) == len(PROBE_MODULES)


def claim() -> dict[str, Any]:
    return {key: value for key, value in node("mode", "eager").items() if key != "_target_"}


@torch.no_grad()
def checked(name: str, baseline: dict[str, Any] | str, device: str) -> list[Check]:
    """What `check` says about a fault on the tiny model with batches of 1 and 4."""
    torch.set_num_threads(1)
    model = build(node("model", "tiny") | {"max_batch": 4, "capture_sizes": [1, 4], "adapter_rank": RANK}, "model")
    mode = Planted(**(claim() | {"name": name, "fault": name}))
    service = Service(model.load(device, "fp32"), model, mode, plan_for([1, 4], [32], model.context_tokens), device, "fp32")
    eager = node("mode", baseline) if isinstance(baseline, str) else baseline
    return [Check(**document) for document in check(service, "fp32", eager, calls_per_shape=6, num_examples=8)["checks"]]
