"""Faults that need no GPU, each through the public command; the healthy twin of each raises nothing."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from stages.core.errors import UserError
from stages.core.records.answer import AttributionRecord
from stages.core.records.base import read
from stages.core.records.path import Evidence
from tests.planted.conftest import Make
from tests.planted.planted_study import PlantedStudy

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
SIZES = ("model.max_batch=12", f"model.capture_sizes={list(range(1, 13))}")
NINE = (*SIZES, "trace.num_requests=60", "measure.plan.virtual_decode_step_ms=60")  # plans nine of the twelve sizes
DYNAMO = {"backend": "eager", "transform": "dynamo"}


def evidence(study: PlantedStudy, mode: str = "dynamo") -> Evidence:
    record = study.captured(mode)
    assert record.data, record.reason
    return record.data.evidence


def check_healthy(found: Evidence) -> None:
    assert (found.verdict, found.findings, found.events) == ("confirmed", [], [])
    assert len(found.reasons) == 1
    assert found.num_graph_breaks == found.num_recompiles == found.num_recompile_limit_hits == 0


@pytest.mark.fault("nine shapes with dynamic=False")
def test_ninth_shape_past_the_limit_is_not_credited(make: Make) -> None:
    found = evidence(make(overrides=NINE, mode_class="WithoutLimit"))
    assert found.verdict == "refuted"
    assert found.path_counts["eager"] > 0
    assert found.num_recompile_limit_hits == 1
    assert any("decode at decoder.py:" in reason and "reached recompile_limit 8" in reason for reason in found.reasons)


@pytest.mark.twin("nine shapes with dynamic=False")
def test_nine_shapes_within_the_limit_are_healthy(make: Make) -> None:
    check_healthy(evidence(make(overrides=NINE)))


@pytest.mark.fault("graph break by a data-dependent if")
def test_branch_on_data_is_told_with_its_reason_and_line(make: Make) -> None:
    found = evidence(make(model_kind="Branches"))
    (text, *_) = [finding.reason for finding in found.findings if finding.kind == "graph_break"]
    assert found.num_graph_breaks >= 1
    assert re.fullmatch(r"graph break at planted\.py:\d+: Data-dependent branching", text)
    assert text in found.reasons


@pytest.mark.fault(".item() in the middle")
def test_item_in_the_middle_fails_with_its_line(make: Make) -> None:
    record = make(model_kind="ReadsItem").captured("dynamo")  # each value that the host read is a guard of what follows
    assert record.status == "failed"
    assert re.search(r"at planted\.py:\d+ reached recompile_limit 4: .*\.item\(\)", record.reason)


@pytest.mark.twin("graph break by a data-dependent if", ".item() in the middle")
@pytest.mark.parametrize("kind", ["Selects", "ReadsTensor"])
def test_same_computation_without_a_break_is_healthy(make: Make, kind: str) -> None:
    check_healthy(evidence(make(model_kind=kind)))


@pytest.mark.fault("KV cache that grows by one each step")
def test_cache_that_grows_by_one_each_step_fails_with_the_guard(make: Make) -> None:
    record = make(model_kind="Grows").captured("dynamo")
    assert record.status == "failed"
    assert "FailOnRecompileLimitHit" in record.reason
    assert "reached recompile_limit 4: tensor 'self.seen' size mismatch at index 0" in record.reason


@pytest.mark.twin("KV cache that grows by one each step", "input made outside inference_mode")
def test_cache_that_keeps_its_size_is_healthy(make: Make) -> None:
    check_healthy(evidence(make(model_kind="Stays")))


@pytest.mark.fault("input made outside inference_mode")
def test_input_made_outside_inference_mode_compiles_a_second_graph(make: Make) -> None:
    found = evidence(make(model_kind="Stays", mode_class="InsideInferenceMode"))
    (finding,) = [finding for finding in found.findings if finding.kind == "recompile"]
    assert "dispatch key set mismatch" in finding.reason
    assert "made outside inference_mode" in finding.reason


@pytest.mark.fault("backend=eager with mode=")
def test_backend_that_ignores_the_mode_is_refused_by_the_configuration(make: Make) -> None:
    study = make(mode__compile_mode="reduce-overhead")
    status, text = study.run("capture", "--mode", "dynamo")
    study.tell("reason", text)
    assert status == 2
    assert "mode.compile_mode: is ignored by torch unless backend is inductor; got backend=eager" in text


@pytest.mark.fault("backend=eager with mode=")
def test_backend_that_ignores_the_mode_refutes_the_claim_of_inductor(make: Make) -> None:
    found = evidence(make("compile", mode_class="IgnoredMode"), "compile")
    assert (found.verdict, found.reasons[0]) == ("refuted", "compiled by eager, claimed inductor")


@pytest.mark.fault("per-layer integer that specialises")
def test_number_of_a_layer_that_specialises_fails_with_its_guard(make: Make) -> None:
    record = make("compile_regional", mode__backend="eager", mode__transform="dynamo", model__num_layers=9, model_kind="Indexed").captured(
        "compile_regional"
    )
    assert record.status == "failed"
    assert "reached recompile_limit" in record.reason
    assert "self.index" in record.reason


@pytest.mark.twin("per-layer integer that specialises")
def test_layers_without_a_number_compile_once_for_all(make: Make) -> None:
    study = make("compile_regional", mode__backend="eager", mode__transform="dynamo", model__num_layers=9, model_kind="Unindexed")
    found = evidence(study, "compile_regional")
    check_healthy(found)
    assert found.num_compiled_calls == 9 * found.num_steps


@pytest.mark.fault("attribute changed after capture")
def test_recompile_along_the_trace_is_told_with_its_step_and_guard(make: Make) -> None:
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


@pytest.mark.fault("compile inside the timed window")
def test_compile_inside_the_timed_window_voids_it(make: Make) -> None:
    study = make(factorials=("inductor_manual",))
    study.plant_cell("dynamo", mode___target_="stages.modes.planted.ChangesLate", mode__steps_before_change=150)
    voided = voided_blocks(study)
    study.tell("reason", "; ".join(f"{mode}: {reason}" for mode, reason in voided))
    assert voided == {("dynamo", "the compiler ran")}


@pytest.mark.twin("compile inside the timed window", "attribute changed after capture", "backend=eager with mode=")
def test_timed_window_without_a_compile_is_healthy_and_so_is_its_proof(make: Make) -> None:
    study = make(factorials=("inductor_manual",))
    assert voided_blocks(study) == set()
    check_healthy(evidence(study))


def voided_blocks(study: PlantedStudy) -> set[tuple[str, str]]:
    """Modes whose timed blocks or sequences do not count, and why, without the seconds."""
    found = study.timed("inductor_manual")
    assert found.data, found.reason
    return {(one.mode, one.voided.partition(" for ")[0]) for one in (*found.data.blocks, *found.data.sequences) if one.voided}


@pytest.mark.fault("SDPA choosing another backend in one mode")
def test_other_attention_in_one_mode_stops_its_contrasts(make: Make) -> None:
    missing = confounds(make, mode___target_="stages.modes.planted.OtherAttention")
    assert any(text.startswith("C: attention kernels differ from those of E") for text in missing), missing


@pytest.mark.twin("SDPA choosing another backend in one mode")
def test_same_attention_in_every_mode_is_healthy(make: Make) -> None:
    assert confounds(make) == []


def confounds(make: Make, **planted: Any) -> list[str]:
    """Why C has no contrast with E, by the public commands; `compile` is Dynamo alone here, which takes seconds."""
    changes = {f"mode__{key}": value for key, value in DYNAMO.items()} | planted
    study = make("compile", factorials=("inductor_manual",), **changes)
    study.plant_cell("C", **changes)
    study.timed("inductor_manual")
    for mode in ("eager", "compile"):
        study.captured(mode)
    status, text = study.run("attribution")
    assert status == 0, text
    answer = read(study.folder / "attribution.json", AttributionRecord)
    assert answer.data
    missing = answer.data.factorials["inductor_manual"].points["decode/1"].missing
    found = [text for text in missing if text.startswith("C:")]
    study.tell("reason", "; ".join(found))
    return found


@pytest.mark.twin("adapters switched by pointer")
def test_adapters_copied_into_their_buffers_keep_what_was_compiled(make: Make) -> None:
    trace = ("trace.num_requests=12", "trace.num_adapters=3", "trace.adapter_alpha=1", "trace.rate_per_s=50")
    record = make(trace="chat_adapters", overrides=("model.adapter_rank=2", *trace)).captured("dynamo")
    assert record.data, record.reason
    check_healthy(record.data.evidence)
    assert record.data.adapters
    assert (record.data.adapters.num_adapters, set(record.data.adapters.paths_after_switch)) == (3, {"compiled"})
    assert record.data.adapters.num_switches > 3


@pytest.mark.on_cpu
@pytest.mark.fault("Trees asked for on a CPU")
def test_trees_on_a_cpu_are_unavailable(make: Make) -> None:
    record = make("cudagraph_trees").captured("cudagraph_trees")
    assert (record.status, record.reason) == ("unavailable", "needs CUDA: a CPU has no CUDA graphs")


@pytest.mark.on_cpu
@pytest.mark.fault("Trees asked for on a CPU")
def test_trees_that_do_not_say_that_they_need_cuda_are_refuted(make: Make) -> None:
    found = evidence(make("cudagraphs_backend", mode_class="ClaimsTreesAnywhere"), "cudagraphs_backend")
    assert found.verdict == "refuted"
    assert "steps replayed" in found.reasons[0]
    assert "torch says: CUDA graphs skipped: cpu device" in found.reasons[0]


@pytest.mark.fault("batch past the largest captured size")
def test_batch_past_the_largest_captured_size_is_refused(make: Make, record_property: Callable[[str, str], None]) -> None:
    with pytest.raises(UserError, match=r"model\.capture_sizes: must end with max_batch") as raised:
        make(overrides=("model.capture_sizes=[1]",))
    record_property("reason", str(raised.value))


@pytest.mark.on_cpu
@pytest.mark.twin("Trees asked for on a CPU", "batch past the largest captured size")
def test_eager_mode_is_healthy(make: Make) -> None:
    check_healthy(evidence(make("eager"), "eager"))
