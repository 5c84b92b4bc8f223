"""Each planted fault is caught by a named probe through the public command; healthy twins raise nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from stages.core import digest
from stages.core.build import build
from stages.core.records import base
from stages.core.records.correctness import Answers, CorrectnessRecord
from stages.workers.checking import check
from stages.workers.probes.registry import PROBES
from stages.workers.service import Service
from tests.faults.planted import Planted, uneven_calls
from tests.workers.conftest import node, plan_for
from tests.workers.small_study import ROOT, SmallStudy, write_study

THROUGH_THE_COMMAND = {
    "stale_token": "teacher_forced",
    "frozen_position": "teacher_forced",
    "position_off_by_one": "teacher_forced",
    "zeroed_cache_slot": "teacher_forced",
    "lost_cache_write": "teacher_forced",
    "output_overwritten": "held_output",
    "padding_leak": "padding",
    "weights_swapped": "updated_weights",
}
IN_THIS_PROCESS = {
    "tokens_cut_short": "free_running",
    "uneven_calls": "repeated_calls",
    "captured_inputs": "new_addresses",
    "cache_of_its_own": "cache_refilled",
    "shared_pool": "shape_order",
    "generator_not_registered": "sampling",
    "generator_of_its_own": "sampling",
}
PROBE_MODULES = {path.stem for path in (ROOT / "stages/workers/probes").glob("*.py")} - {"__init__", "bench", "probe", "registry"}
PADDED = ("model.max_batch=4", "model.capture_sizes=[1,4]")


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    """A copy of the package with the planted modes in it, and a study whose largest batch has padding."""
    home = tmp_path_factory.mktemp("planted")
    shutil.copytree(ROOT / "stages", home / "stages", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(Path(__file__).with_name("planted.py"), home / "stages" / "modes" / "planted.py")
    return write_study(home, "eager", overrides=PADDED)


def plant(study: SmallStudy, fault: str, **keys: str) -> Answers:
    """`python -m stages.correctness --mode <fault>` in the copied tree; the record's data."""
    document: dict[str, Any] = yaml.safe_load((study.folder / "config" / "eager.yaml").read_text(encoding="utf-8"))
    claim = {"_target_": "stages.modes.planted.Planted", "name": fault, "fault": fault.partition("-")[0], **keys}
    document["mode"] = {**document["mode"], **claim}  # not in place: the baseline is the same YAML node
    (study.folder / "config" / f"{fault}.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
    variables = {**os.environ, **study.variables, "OPMODE_ROOT": str(study.home), "PYTHONPATH": str(study.home)}
    command = [sys.executable, "-m", "stages.correctness", "--mode", fault]
    done = subprocess.run(command, cwd=study.home, env=variables, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    record = base.read(study.folder / "correctness" / f"{fault}.json", CorrectnessRecord)
    assert record.data is not None, f"{record.status}: {record.reason} {record.log_tail}"
    assert f"{record.data.num_probes_run} of {len(record.data.probes)} probes executed" in done.stdout
    return record.data


def failed(answers: Answers) -> set[str]:
    return {check.probe for check in answers.checks if check.verdict == "fail"}


def cases(faults: dict[str, str], quick: set[str]) -> list[Any]:
    """A process each costs seconds: the command is run for all of them in the long suite, for some in the short one."""
    return [pytest.param(*case, id=case[0], marks=() if case[0] in quick else pytest.mark.slow) for case in faults.items()]


@pytest.mark.parametrize(("fault", "probe"), cases(THROUGH_THE_COMMAND, {"output_overwritten", "weights_swapped"}))
def test_planted_fault_is_caught_by_its_probe(fault: str, probe: str, planted: SmallStudy) -> None:
    answers = plant(planted, fault)
    assert answers.verdict == "wrong"
    assert probe in failed(answers), [check for check in answers.checks if check.verdict == "fail"]
    assert next(run.verdict for run in answers.probes if run.name == probe) == "fail"


@pytest.mark.parametrize(
    "keys", [pytest.param({"replay": "none"}, marks=pytest.mark.slow), {"replay": "manual"}], ids=["launched", "replayed"]
)
def test_healthy_twin_raises_nothing_and_all_probes_run(keys: dict[str, str], planted: SmallStudy) -> None:
    answers = plant(planted, f"healthy-{keys['replay']}", **keys)
    assert answers.verdict == "correct"
    assert failed(answers) == set()
    assert [run.name for run in answers.probes] == [probe.name for probe in PROBES]
    assert answers.num_probes_run == len(PROBES) - 1  # random weights know no answers
    assert {run.name for run in answers.probes if run.verdict == "not_run"} == {"known_answers"}


@pytest.mark.parametrize(("fault", "probe"), (THROUGH_THE_COMMAND | IN_THIS_PROCESS).items())
def test_fault_is_caught_by_its_probe(fault: str, probe: str) -> None:
    found = checked(fault, "eager")
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
def checked(fault: str, baseline: dict[str, Any] | str) -> dict[str, Any]:
    """What `check` says about a fault on the tiny model with batches of 1 and 4."""
    torch.set_num_threads(1)
    model = build(node("model", "tiny") | {"max_batch": 4, "capture_sizes": [1, 4]}, "model")
    mode = Planted(**(claim() | {"name": fault, "fault": fault}))
    service = Service(model.load("cpu", "fp32"), model, mode, plan_for([1, 4], [32], model.context_tokens), "cpu", "fp32")
    eager = node("mode", baseline) if isinstance(baseline, str) else baseline
    return check(service, "fp32", eager, calls_per_shape=6, num_examples=8)
