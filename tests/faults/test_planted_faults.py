"""Each planted fault is caught by a named probe through the public command; healthy twins raise nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from stages.core import digest
from stages.core.build import build
from stages.workers.checking import check
from stages.workers.probes.registry import PROBES
from stages.workers.service import Service
from tests.faults.planted import Planted, uneven_calls
from tests.faults.planted_tree import RANK, PlantedTree, failed, fault, planted_tree, why
from tests.workers.conftest import node, plan_for
from tests.workers.small_study import ROOT

THROUGH_THE_COMMAND = {
    "stale_token": "teacher_forced",
    "frozen_position": "teacher_forced",
    "position_off_by_one": "teacher_forced",
    "zeroed_cache_slot": "teacher_forced",
    "lost_cache_write": "teacher_forced",
    "output_overwritten": "held_output",
    "padding_leak": "padding",
    "weights_swapped": "updated_weights",
    "weights_by_pointer": "updated_weights",
    "stale_adapter": "adapter_switch",
    "attribute_frozen": "module_attribute",
    "captured_branch": "data_branch",
    "package_of_planned_sizes": "unplanned_size",
}
IN_THIS_PROCESS = {
    "tokens_cut_short": "free_running",
    "uneven_calls": "repeated_calls",
    "captured_inputs": "new_addresses",
    "cache_of_its_own": "cache_refilled",
    "shared_pool": "shape_order",
    "generator_not_registered": "sampling",
    "generator_of_its_own": "sampling",
    "mutates_twice": "mutated_inputs",
    "output_read_back": "written_output",
    "host_work_elided": "host_work",
    "bound_to_its_thread": "other_thread",
}
NO_PROBES = {"__init__", "bench", "held_function", "probe", "registry"}
PROBE_MODULES = {path.stem for path in (ROOT / "stages/workers/probes").glob("*.py")} - NO_PROBES


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> PlantedTree:
    return planted_tree(tmp_path_factory.mktemp("planted"))


def cases(faults: dict[str, str], quick: set[str]) -> list[Any]:
    """A process each costs seconds: the command is run for all of them in the long suite, for some in the short one."""
    return [pytest.param(*case, id=case[0], marks=() if case[0] in quick else pytest.mark.slow) for case in faults.items()]


@pytest.mark.parametrize(("name", "probe"), cases(THROUGH_THE_COMMAND, {"output_overwritten", "weights_swapped"}))
def test_planted_fault_is_caught_by_its_probe(name: str, probe: str, planted: PlantedTree) -> None:
    answers = planted.checked(name, **fault(name))
    assert answers.verdict == "wrong"
    assert probe in failed(answers), why(answers)
    assert next(run.verdict for run in answers.probes if run.name == probe) == "fail"


@pytest.mark.parametrize(
    "keys", [pytest.param({"replay": "none"}, marks=pytest.mark.slow), {"replay": "manual"}], ids=["launched", "replayed"]
)
def test_healthy_twin_raises_nothing_and_all_probes_run(keys: dict[str, str], planted: PlantedTree) -> None:
    name = f"healthy-{keys['replay']}"
    answers = planted.checked(name, **fault(name, **keys))
    assert answers.verdict == "correct"
    assert failed(answers) == set()
    assert [run.name for run in answers.probes] == [probe.name for probe in PROBES]
    idle = {"known_answers", "custom_ops"} | ({"unplanned_size"} if keys["replay"] == "manual" else set())
    assert {run.name for run in answers.probes if run.verdict == "not_run"} == idle  # random weights know no answers
    assert answers.num_probes_run == len(PROBES) - len(idle)


@pytest.mark.parametrize(("name", "probe"), (THROUGH_THE_COMMAND | IN_THIS_PROCESS).items())
def test_fault_is_caught_by_its_probe(name: str, probe: str) -> None:
    found = checked(name, "eager")
    assert probe in {document["probe"] for document in found["checks"] if document["verdict"] == "fail"}


def test_baseline_that_disagrees_with_itself_fails_and_hides_nothing() -> None:
    baseline = {"_target_": "stages.modes.eager.Eager", **claim()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("stages.modes.eager.Eager.transformed", lambda self, function, num_shapes: uneven_calls(function))
        found = checked("uneven_calls", baseline)
    assert {"eager_repeats", "repeated_calls"} <= {document["name"] for document in found["checks"] if document["verdict"] == "fail"}


def test_code_hash_of_the_stage_covers_every_probe() -> None:
    names = digest._imports_of("stages.workers.probes.registry")
    assert {f"stages.workers.probes.{module}" for module in PROBE_MODULES} <= set(names)
    assert "stages.workers.probes.registry" in digest._imports_of("stages.workers.checking")


def test_every_file_of_a_probe_is_registered_once() -> None:
    assert len({probe.name for probe in PROBES}) == len(PROBES) == len(PROBE_MODULES)


def claim() -> dict[str, Any]:
    return {key: value for key, value in node("mode", "eager").items() if key != "_target_"}


@torch.no_grad()
def checked(name: str, baseline: dict[str, Any] | str) -> dict[str, Any]:
    """What `check` says about a fault on the tiny model with batches of 1 and 4."""
    torch.set_num_threads(1)
    model = build(node("model", "tiny") | {"max_batch": 4, "capture_sizes": [1, 4], "adapter_rank": RANK}, "model")
    mode = Planted(**(claim() | {"name": name, "fault": name}))
    service = Service(model.load("cpu", "fp32"), model, mode, plan_for([1, 4], [32], model.context_tokens), "cpu", "fp32")
    eager = node("mode", baseline) if isinstance(baseline, str) else baseline
    return check(service, "fp32", eager, calls_per_shape=6, num_examples=8)
