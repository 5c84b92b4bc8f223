"""Faults that need CUDA, each through the public command, with CUDAGraph Trees or a capture of ours."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stages.core.records.base import Record
from stages.core.records.correctness import CorrectnessRecord
from stages.core.records.path import CaptureRecord, Finding, PathProof
from tests.ahead import ONE_AT_A_TIME
from tests.planted.conftest import planted
from tests.planted.planted_study import PlantedStudy, copy_project

pytestmark = [pytest.mark.slow, pytest.mark.gpu, pytest.mark.timeout(900)]
Told = list[tuple[str, Any]]
PLAIN_INPUT, NOT_CAPTURABLE = "KV cache as a plain mutated input under Trees", "graph whose only GPU op cannot be captured"
ITEM, BRANCH, SWAPPED = ".item() in the middle", "graph break by a data-dependent if", "weights swapped by pointer 200 times"
THREAD, PAST, ATTRIBUTE = "second thread on torch 2.11", "batch past the largest captured size", "attribute changed after capture"
POINTED = "adapters switched by pointer"
NUM_SWAPS = 200


def measured(
    measure: Callable[[PlantedStudy, str], Record[Any]], mode: str, changes: dict[str, Any], home: Path
) -> tuple[Record[Any], Told]:
    """One mode on the GPU with these edits, in a project of its own; the record, and what it told."""
    told: Told = []
    with ONE_AT_A_TIME:
        study = planted(copy_project(home / "project"), home, lambda *said: told.append(said), mode, device="cuda", **changes)
    return measure(study, mode), told


def captures(mode: str, **changes: Any) -> pytest.MarkDecorator:
    """The test's `record` is that of `capture`."""
    return pytest.mark.ahead(partial(measured, PlantedStudy.captured, mode, changes))


def checks(mode: str, **changes: Any) -> pytest.MarkDecorator:
    """The test's `record` is that of `correctness`."""
    return pytest.mark.ahead(partial(measured, PlantedStudy.checked, mode, changes))


@pytest.fixture
def record(ahead: tuple[Record[Any], Told], record_property: Callable[[str, Any], None]) -> Record[Any]:
    found, told = ahead
    for said in told:
        record_property(*said)
    return found


@pytest.fixture
def proof(record: CaptureRecord) -> PathProof:
    """What the capture found."""
    assert record.data, record.reason
    return record.data


def check_healthy(found: PathProof) -> None:
    assert found.evidence.verdict == "confirmed", found.evidence.reasons
    assert [finding for finding in found.evidence.findings if finding.kind != "partition"] == []
    assert set(found.evidence.path_counts) == {"replayed"}
    assert found.churn
    assert (found.churn.verdict, found.churn.num_events) == ("settled", 0)
    assert all(step.graph_launches_per_call == 1 for step in found.profile)


def graph_break(found: PathProof) -> Finding:
    """The break, told as a finding and among the reasons, whatever the verdict."""
    first = next(finding for finding in found.evidence.findings if finding.kind == "graph_break")
    assert any(first.reason in reason for reason in found.evidence.reasons)
    assert found.evidence.num_graph_breaks >= 1
    assert all(step.graph_launches_per_call != 1 for step in found.profile if step.phase == "decode")
    return first


@pytest.mark.twin(PLAIN_INPUT, NOT_CAPTURABLE, THREAD, BRANCH)
@captures("cudagraph_trees")
def test_healthy_trees_are_confirmed(proof: PathProof) -> None:
    check_healthy(proof)
    costs = [step.replay_cost for step in proof.profile]
    assert all(cost and min(cost.guards_us, cost.wrapper_us, cost.tree_checks_us, cost.graph_launch_us) > 0 for cost in costs)
    assert all(cost and cost.input_copies_us == 0 for cost in costs)  # every input keeps its address


@pytest.mark.fault(PLAIN_INPUT)
@captures("cudagraph_trees", mode_class="FreshCaches")
def test_cache_passed_as_a_plain_mutated_input_keeps_trees_from_replaying(proof: PathProof) -> None:
    found = proof.evidence
    assert found.verdict == "refuted"
    assert found.path_counts.get("replayed", 0) == 0
    assert "steps replayed" in found.reasons[0]
    assert "mutated inputs" in found.reasons[0]


@pytest.mark.fault(NOT_CAPTURABLE)
@captures("cudagraph_trees", mode_class="CompilesTheCopy")
def test_copy_to_the_host_is_never_captured_though_torch_counts_no_skip(proof: PathProof) -> None:
    found = proof.evidence
    assert found.verdict == "refuted"
    assert found.reasons[0].startswith("asked for inductor kernels, replay trees; 0 of")
    assert found.num_compiled_calls == found.num_steps
    assert found.num_replays == found.num_recordings == 0


@pytest.mark.fault(ITEM)
@captures("cudagraph_trees", model_kind="Waits")
def test_item_that_nothing_reads_breaks_the_graph_and_is_told_with_its_line(proof: PathProof) -> None:
    first = graph_break(proof)
    assert "planted.py:" in first.reason
    assert "item()" in first.reason


@pytest.mark.twin(ITEM)
@captures("cudagraph_trees", model_kind="ReadsTensor")
def test_same_value_that_stays_on_the_device_is_healthy(proof: PathProof) -> None:
    check_healthy(proof)


@pytest.mark.fault(BRANCH)
@captures("cudagraph_trees", model_kind="Branches")
def test_branch_on_data_under_trees_is_told_with_its_line(proof: PathProof) -> None:
    first = graph_break(proof)
    assert "planted.py:" in first.reason
    assert "Data-dependent branching" in first.reason


def swapping(kind: str) -> dict[str, Any]:
    steps = f"measure.capture.max_replayed_steps={NUM_SWAPS}"
    return {"mode_class": kind, "overrides": ("trace.num_requests=120", steps)}


@pytest.mark.fault(SWAPPED)
@captures("cudagraph_trees", **swapping("SwapsWeights"))
def test_weights_swapped_by_pointer_record_again_every_step(proof: PathProof) -> None:
    assert proof.evidence.verdict == "refuted"
    assert proof.evidence.num_steps == NUM_SWAPS
    assert proof.evidence.path_counts == {"recorded": NUM_SWAPS}
    assert proof.churn
    assert (proof.churn.verdict, proof.churn.num_events) == ("not_settled", NUM_SWAPS)


@pytest.mark.twin(SWAPPED)
@captures("cudagraph_trees", **swapping("CopiesWeights"))
def test_weights_copied_into_their_addresses_are_healthy(proof: PathProof) -> None:
    check_healthy(proof)
    assert proof.evidence.num_steps == NUM_SWAPS


def adapters(**changes: Any) -> dict[str, Any]:
    """A short trace whose requests ask for three adapters."""
    trace = ("trace.num_requests=12", "trace.num_adapters=3", "trace.adapter_alpha=1", "trace.rate_per_s=50")
    return {"trace": "chat_adapters", "overrides": ("model.adapter_rank=2", *trace), **changes}


@pytest.mark.fault(POINTED)
@captures("cudagraph_trees", **adapters(mode_class="PointsAtAdapters"))
def test_adapters_switched_by_pointer_record_again(proof: PathProof) -> None:
    assert proof.evidence.verdict == "refuted"
    assert proof.adapters
    assert proof.adapters.paths_after_switch["recorded"] > 0
    assert any(event.path == "recorded" and event.adapter_id is not None for event in proof.evidence.events)


@pytest.mark.twin(POINTED)
@pytest.mark.parametrize("mode", [pytest.param(mode, marks=captures(mode, **adapters())) for mode in ("cudagraph_trees", "cuda_graph")])
def test_adapters_copied_into_their_buffers_are_healthy(proof: PathProof, mode: str) -> None:
    assert proof.claim["replay"] == {"cudagraph_trees": "trees", "cuda_graph": "manual"}[mode]
    check_healthy(proof)
    assert proof.adapters
    assert proof.adapters.num_adapters == 3
    assert proof.adapters.paths_after_switch == {"replayed": proof.adapters.num_switches}
    assert proof.adapters.num_switches > 3


@pytest.mark.fault(THREAD)
@captures("cudagraph_trees", mode_class="OnAnotherThread")
def test_trees_called_from_another_thread_work_or_say_why_not(record: CaptureRecord) -> None:
    if record.data is None:
        assert record.status == "failed"
        assert "CUDAGraph Trees was called from a thread that it does not know" in record.reason
    else:
        check_healthy(record.data)


@pytest.mark.fault(PAST)
@captures("cuda_graph", mode_class="CapturesSmall")
def test_batch_past_the_largest_captured_size_is_a_fallback_with_its_step(proof: PathProof) -> None:
    found = proof.evidence
    assert found.verdict == "refuted"
    assert found.path_counts["fallback"] > 0
    assert "decode of 2 padded to 2" in found.reasons[0]
    assert "profile of decode/2 shows no graph launch" in found.reasons


@pytest.mark.twin(PAST)
@captures("cuda_graph")
def test_captured_eager_mode_is_healthy(proof: PathProof) -> None:
    check_healthy(proof)
    costs = [step.replay_cost for step in proof.profile]
    assert all(cost and cost.graph_launch_us > 0 and cost.guards_us == cost.tree_checks_us == 0 for cost in costs)


@pytest.mark.fault(ATTRIBUTE)
@checks("cuda_graph", mode_class="ScalesLate", model_kind="Scaled")
def test_attribute_changed_after_capture_makes_the_answers_wrong(record: CorrectnessRecord) -> None:
    assert record.data, record.reason
    assert record.data.verdict == "wrong"
    assert {check.name for check in record.data.checks if check.verdict == "fail"} >= {"teacher_forced_logits", "bit_identical_to_eager"}


@pytest.mark.twin(ATTRIBUTE)
@checks("cuda_graph", model_kind="Scaled")
def test_attribute_that_stays_is_healthy(record: CorrectnessRecord) -> None:
    assert record.data, record.reason
    assert record.data.verdict == "correct", [check for check in record.data.checks if check.verdict == "fail"]


MORE_MODES = ("compile_dynamic", "compile_regional", "cudagraphs_backend", "cudagraph_trees_partition_on", "cudagraph_trees_partition_off")


@pytest.mark.parametrize("mode", [pytest.param(mode, marks=captures(mode)) for mode in MORE_MODES])
def test_further_mode_is_proved_on_a_gpu(proof: PathProof, mode: str) -> None:
    assert proof.evidence.verdict == "confirmed", (mode, proof.evidence.reasons)
    assert proof.churn
    assert proof.churn.verdict == "settled"
