"""Faults that need no GPU, each through the public command; the healthy twin of each raises nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stages.core.errors import UserError
from stages.core.records.base import read
from stages.core.records.path import Evidence
from stages.core.records.steps import SteadyStateRecord
from tests.planted.planted_study import PlantedStudy, copy_project
from tests.workers.small_study import write_study

pytestmark = pytest.mark.slow
SIZES = ("model.max_batch=12", f"model.capture_sizes={list(range(1, 13))}")
NINE = (*SIZES, "trace.num_requests=60", "measure.plan.virtual_decode_step_ms=60")  # plans nine of the twelve sizes
MakeStudy = Callable[..., PlantedStudy]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_project(tmp_path_factory.mktemp("project"))


@pytest.fixture
def make(project: Path, tmp_path: Path) -> MakeStudy:
    def study(mode: str = "dynamo", overrides: tuple[str, ...] = (), **changes: Any) -> PlantedStudy:
        longer = ("measure.capture.max_launched_steps=400",)
        small = PlantedStudy(write_study(tmp_path, *dict.fromkeys(("eager", mode)), overrides=(*longer, *overrides)).home, project=project)
        small.plant(mode, **changes)
        return small

    return study


def evidence(study: PlantedStudy, mode: str = "dynamo") -> Evidence:
    record = study.captured(mode)
    assert record.data, record.reason
    return record.data.evidence


def check_healthy(found: Evidence) -> None:
    assert (found.verdict, found.findings, found.events) == ("confirmed", [], [])
    assert len(found.reasons) == 1
    assert found.num_graph_breaks == found.num_recompiles == found.num_recompile_limit_hits == 0


def test_ninth_shape_past_the_limit_is_not_credited(make: MakeStudy) -> None:
    found = evidence(make(overrides=NINE, mode_class="WithoutLimit"))
    assert found.verdict == "refuted"
    assert found.path_counts["eager"] > 0
    assert found.num_recompile_limit_hits == 1
    assert any("decode at decoder.py:" in reason and "reached recompile_limit 8" in reason for reason in found.reasons)


def test_nine_shapes_within_the_limit_are_healthy(make: MakeStudy) -> None:
    check_healthy(evidence(make(overrides=NINE)))


def test_branch_on_data_is_told_with_its_reason_and_line(make: MakeStudy) -> None:
    found = evidence(make(model_kind="Branches"))
    (text, *_) = [finding.reason for finding in found.findings if finding.kind == "graph_break"]
    assert found.num_graph_breaks >= 1
    assert re.fullmatch(r"graph break at planted\.py:\d+: Data-dependent branching", text)
    assert text in found.reasons


def test_item_in_the_middle_fails_with_its_line(make: MakeStudy) -> None:
    record = make(model_kind="ReadsItem").captured("dynamo")  # each value that the host read is a guard of what follows
    assert record.status == "failed"
    assert re.search(r"at planted\.py:\d+ reached recompile_limit 4: .*\.item\(\)", record.reason)


@pytest.mark.parametrize("kind", ["Selects", "ReadsTensor"])
def test_same_computation_without_a_break_is_healthy(make: MakeStudy, kind: str) -> None:
    check_healthy(evidence(make(model_kind=kind)))


def test_cache_that_grows_by_one_each_step_fails_with_the_guard(make: MakeStudy) -> None:
    record = make(model_kind="Grows").captured("dynamo")
    assert record.status == "failed"
    assert "FailOnRecompileLimitHit" in record.reason
    assert "reached recompile_limit 4: tensor 'self.seen' size mismatch at index 0" in record.reason


def test_cache_that_keeps_its_size_is_healthy(make: MakeStudy) -> None:
    check_healthy(evidence(make(model_kind="Stays")))


def test_input_made_outside_inference_mode_compiles_a_second_graph(make: MakeStudy) -> None:
    found = evidence(make(model_kind="Stays", mode_class="InsideInferenceMode"))
    (finding,) = [finding for finding in found.findings if finding.kind == "recompile"]
    assert "dispatch key set mismatch" in finding.reason
    assert "made outside inference_mode" in finding.reason


def test_backend_that_ignores_the_mode_is_refused_by_the_configuration(make: MakeStudy) -> None:
    study = make(mode__compile_mode="reduce-overhead")
    status, text = study.run("capture", "--mode", "dynamo")
    assert status == 2
    assert "mode.compile_mode: is ignored by torch unless backend is inductor; got backend=eager" in text


def test_backend_that_ignores_the_mode_refutes_the_claim_of_inductor(make: MakeStudy) -> None:
    found = evidence(make("compile", mode_class="IgnoredMode"), "compile")
    assert (found.verdict, found.reasons[0]) == ("refuted", "compiled by eager, claimed inductor")


def test_number_of_a_layer_that_specialises_fails_with_its_guard(make: MakeStudy) -> None:
    record = make("compile_regional", mode__backend="eager", mode__transform="dynamo", model__num_layers=9, model_kind="Indexed").captured(
        "compile_regional"
    )
    assert record.status == "failed"
    assert "reached recompile_limit" in record.reason
    assert "self.index" in record.reason


def test_layers_without_a_number_compile_once_for_all(make: MakeStudy) -> None:
    study = make("compile_regional", mode__backend="eager", mode__transform="dynamo", model__num_layers=9, model_kind="Unindexed")
    found = evidence(study, "compile_regional")
    check_healthy(found)
    assert found.num_compiled_calls == 9 * found.num_steps


def test_recompile_along_the_trace_is_told_with_its_step_and_guard(make: MakeStudy) -> None:
    study = make(mode_class="ChangesLate")
    record = study.captured("dynamo")
    assert record.data
    found, churn = record.data.evidence, record.data.churn
    assert found.verdict == "refuted"
    (event, *_) = found.events
    assert event.path == "recompiled"
    assert "context_tokens" in event.reasons[0]
    assert (
        f"first at step {event.step}, {event.phase} of {event.size} padded to {event.padded_size}: {event.reasons[0]}" in found.reasons[0]
    )
    assert churn
    assert churn.num_events == found.num_recompiles >= 1


def test_compile_inside_the_timed_window_voids_it(project: Path, tmp_path: Path) -> None:
    study = PlantedStudy(write_study(tmp_path, "eager", "dynamo", factorials=("inductor_manual",)).home, project=project)
    changes = {"cells__dynamo__mode___target_": "stages.modes.planted.ChangesLate", "cells__dynamo__mode__steps_before_change": 150}
    study.edit("factorial/inductor_manual", **changes)
    status, text = study.run("steady_state", "--factorial", "inductor_manual")
    assert status == 0, text
    found = read(study.folder / "steady_state" / "inductor_manual.json", SteadyStateRecord)
    assert found.data, found.reason
    blocks = {(block.mode, block.voided.partition(" for ")[0]) for block in found.data.blocks}
    sequences = {(run.mode, run.voided.partition(" for ")[0]) for run in found.data.sequences}
    voided = {(mode, reason) for mode, reason in blocks | sequences if reason}
    assert voided == {("dynamo", "the compiler ran")}


def test_trees_on_a_cpu_are_unavailable(make: MakeStudy) -> None:
    record = make("cudagraph_trees").captured("cudagraph_trees")
    assert (record.status, record.reason) == ("unavailable", "needs CUDA: a CPU has no CUDA graphs")


def test_trees_that_do_not_say_that_they_need_cuda_are_refuted(make: MakeStudy) -> None:
    found = evidence(make("cudagraphs_backend", mode_class="ClaimsTreesAnywhere"), "cudagraphs_backend")
    assert found.verdict == "refuted"
    assert "steps replayed" in found.reasons[0]
    assert "torch says: CUDA graphs skipped: cpu device" in found.reasons[0]


def test_batch_past_the_largest_captured_size_is_refused(make: MakeStudy) -> None:
    with pytest.raises(UserError, match=r"model\.capture_sizes: must end with max_batch"):
        make(overrides=("model.capture_sizes=[1]",))


def test_eager_mode_is_healthy(make: MakeStudy) -> None:
    check_healthy(evidence(make("eager"), "eager"))
