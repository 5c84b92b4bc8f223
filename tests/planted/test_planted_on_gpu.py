"""Faults that need CUDA, each through the public command, with CUDAGraph Trees or a capture of ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stages.core.records.path import Finding, PathProof
from tests.planted.conftest import Make

pytestmark = [pytest.mark.slow, pytest.mark.gpu, pytest.mark.timeout(900)]
Proof = Callable[..., PathProof]
PLAIN_INPUT, NOT_CAPTURABLE = "KV cache as a plain mutated input under Trees", "graph whose only GPU op cannot be captured"
ITEM, BRANCH, SWAPPED = ".item() in the middle", "graph break by a data-dependent if", "weights swapped by pointer 200 times"
THREAD, PAST, ATTRIBUTE = "second thread on torch 2.11", "batch past the largest captured size", "attribute changed after capture"
POINTED = "adapters switched by pointer"
NUM_SWAPS = 200


@pytest.fixture
def proof(make: Make) -> Proof:
    """Capture one mode on the GPU with these edits; what it found."""

    def captured(mode: str, **changes: Any) -> PathProof:
        record = make(mode, device="cuda", **changes).captured(mode)
        assert record.data, record.reason
        return record.data

    return captured


def check_healthy(found: PathProof) -> None:
    assert found.evidence.verdict == "confirmed", found.evidence.reasons
    assert [finding for finding in found.evidence.findings if finding.kind != "partition"] == []
    assert set(found.evidence.path_counts) == {"replayed"}
    assert found.churn
    assert (found.churn.verdict, found.churn.num_events) == ("settled", 0)
    assert all(step.graph_launches_per_call == 1 for step in found.profile)


def check_graphs(found: PathProof) -> None:
    """Memory of each captured shape, largest first; together no more than the private pools hold."""
    assert [graph.shape for graph in found.graphs] == ["prefill/32", "decode/2", "decode/1"]
    assert found.graphs[0].pool_bytes > 0
    assert sum(graph.pool_bytes for graph in found.graphs) <= found.memory.graph_pool_bytes


def graph_break(found: PathProof) -> Finding:
    """The break, told as a finding and among the reasons, whatever the verdict."""
    first = next(finding for finding in found.evidence.findings if finding.kind == "graph_break")
    assert any(first.reason in reason for reason in found.evidence.reasons)
    assert found.evidence.num_graph_breaks >= 1
    assert all(step.graph_launches_per_call != 1 for step in found.profile if step.phase == "decode")
    return first


@pytest.mark.twin(PLAIN_INPUT, NOT_CAPTURABLE, THREAD, BRANCH)
def test_healthy_trees_are_confirmed(proof: Proof) -> None:
    found = proof("cudagraph_trees")
    check_healthy(found)
    costs = [step.replay_cost for step in found.profile]
    assert all(cost and min(cost.guards_us, cost.wrapper_us, cost.tree_checks_us, cost.graph_launch_us) > 0 for cost in costs)
    assert all(cost and cost.input_copies_us == 0 for cost in costs)  # every input keeps its address


@pytest.mark.fault(PLAIN_INPUT)
def test_cache_passed_as_a_plain_mutated_input_keeps_trees_from_replaying(proof: Proof) -> None:
    found = proof("cudagraph_trees", mode_class="FreshCaches").evidence
    assert found.verdict == "refuted"
    assert found.path_counts.get("replayed", 0) == 0
    assert "steps replayed" in found.reasons[0]
    assert "mutated inputs" in found.reasons[0]


@pytest.mark.fault(NOT_CAPTURABLE)
def test_copy_to_the_host_is_never_captured_though_torch_counts_no_skip(proof: Proof) -> None:
    found = proof("cudagraph_trees", mode_class="CompilesTheCopy").evidence
    assert found.verdict == "refuted"
    assert found.reasons[0].startswith("asked for inductor kernels, replay trees; 0 of")
    assert found.num_compiled_calls == found.num_steps
    assert found.num_replays == found.num_recordings == 0


@pytest.mark.fault(ITEM)
def test_item_that_nothing_reads_breaks_the_graph_and_is_told_with_its_line(proof: Proof) -> None:
    first = graph_break(proof("cudagraph_trees", model_kind="Waits"))
    assert "planted.py:" in first.reason
    assert "item()" in first.reason


@pytest.mark.twin(ITEM)
def test_same_value_that_stays_on_the_device_is_healthy(proof: Proof) -> None:
    check_healthy(proof("cudagraph_trees", model_kind="ReadsTensor"))


@pytest.mark.fault(BRANCH)
def test_branch_on_data_under_trees_is_told_with_its_line(proof: Proof) -> None:
    first = graph_break(proof("cudagraph_trees", model_kind="Branches"))
    assert "planted.py:" in first.reason
    assert "Data-dependent branching" in first.reason


def swapping(kind: str) -> dict[str, Any]:
    steps = f"measure.capture.max_replayed_steps={NUM_SWAPS}"
    return {"mode_class": kind, "overrides": ("trace.num_requests=120", steps)}


@pytest.mark.fault(SWAPPED)
def test_weights_swapped_by_pointer_record_again_every_step(proof: Proof) -> None:
    found = proof("cudagraph_trees", **swapping("SwapsWeights"))
    assert found.evidence.verdict == "refuted"
    assert found.evidence.num_steps == NUM_SWAPS
    assert found.evidence.path_counts == {"recorded": NUM_SWAPS}
    assert found.churn
    assert (found.churn.verdict, found.churn.num_events) == ("not_settled", NUM_SWAPS)


@pytest.mark.twin(SWAPPED)
def test_weights_copied_into_their_addresses_are_healthy(proof: Proof) -> None:
    found = proof("cudagraph_trees", **swapping("CopiesWeights"))
    check_healthy(found)
    assert found.evidence.num_steps == NUM_SWAPS


def adapters(**changes: Any) -> dict[str, Any]:
    """A short trace whose requests ask for three adapters."""
    trace = ("trace.num_requests=12", "trace.num_adapters=3", "trace.adapter_alpha=1", "trace.rate_per_s=50")
    return {"trace": "chat_adapters", "overrides": ("model.adapter_rank=2", *trace), **changes}


@pytest.mark.fault(POINTED)
def test_adapters_switched_by_pointer_record_again(proof: Proof) -> None:
    found = proof("cudagraph_trees", **adapters(mode_class="PointsAtAdapters"))
    assert found.evidence.verdict == "refuted"
    assert found.adapters
    assert found.adapters.paths_after_switch["recorded"] > 0
    assert any(event.path == "recorded" and event.adapter_id is not None for event in found.evidence.events)


@pytest.mark.twin(POINTED)
@pytest.mark.parametrize("mode", ["cudagraph_trees", "cuda_graph"])
def test_adapters_copied_into_their_buffers_are_healthy(proof: Proof, mode: str) -> None:
    found = proof(mode, **adapters())
    check_healthy(found)
    assert found.adapters
    assert found.adapters.num_adapters == 3
    assert found.adapters.paths_after_switch == {"replayed": found.adapters.num_switches}
    assert found.adapters.num_switches > 3


@pytest.mark.fault(THREAD)
def test_trees_called_from_another_thread_work_or_say_why_not(make: Make) -> None:
    record = make("cudagraph_trees", device="cuda", mode_class="OnAnotherThread").captured("cudagraph_trees")
    if record.data is None:
        assert record.status == "failed"
        assert "CUDAGraph Trees was called from a thread that it does not know" in record.reason
    else:
        check_healthy(record.data)


@pytest.mark.fault(PAST)
def test_batch_past_the_largest_captured_size_is_a_fallback_with_its_step(proof: Proof) -> None:
    found = proof("cuda_graph", mode_class="CapturesSmall").evidence
    assert found.verdict == "refuted"
    assert found.path_counts["fallback"] > 0
    assert "decode of 2 padded to 2" in found.reasons[0]
    assert "profile of decode/2 shows no graph launch" in found.reasons


@pytest.mark.twin(PAST)
def test_captured_eager_mode_is_healthy(proof: Proof) -> None:
    found = proof("cuda_graph")
    check_healthy(found)
    costs = [step.replay_cost for step in found.profile]
    assert all(cost and cost.graph_launch_us > 0 and cost.guards_us == cost.tree_checks_us == 0 for cost in costs)


@pytest.mark.fault(ATTRIBUTE)
def test_attribute_changed_after_capture_makes_the_answers_wrong(make: Make) -> None:
    record = make("cuda_graph", device="cuda", mode_class="ScalesLate", model_kind="Scaled").checked("cuda_graph")
    assert record.data, record.reason
    assert record.data.verdict == "wrong"
    assert {check.name for check in record.data.checks if check.verdict == "fail"} >= {"teacher_forced_logits", "bit_identical_to_eager"}


@pytest.mark.twin(ATTRIBUTE)
def test_attribute_that_stays_is_healthy(make: Make) -> None:
    record = make("cuda_graph", device="cuda", model_kind="Scaled").checked("cuda_graph")
    assert record.data, record.reason
    assert record.data.verdict == "correct", [check for check in record.data.checks if check.verdict == "fail"]


MORE_MODES = ("compile_dynamic", "compile_regional", "cudagraphs_backend", "cudagraph_trees_partition_on", "cudagraph_trees_partition_off")


@pytest.mark.parametrize("mode", MORE_MODES)
def test_further_mode_is_proved_on_a_gpu(proof: Proof, mode: str) -> None:
    found = proof(mode)
    assert found.evidence.verdict == "confirmed", found.evidence.reasons
    assert found.churn
    assert found.churn.verdict == "settled"
