"""capture: the record joins what the worker walked, profiled and weighed."""

from __future__ import annotations

from typing import Any

import pytest

from stages.capture import proof_of
from stages.core.records.path import Memory
from tests.workers.small_study import SmallStudy, write_study


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    return write_study(tmp_path_factory.mktemp("small"), "eager", "dynamo")


def walked(*path_runs: tuple[str, int], **changes: Any) -> dict[str, Any]:
    runs = [{"path": path, "phase": "decode", "padded_size": 2, "count": count} for path, count in path_runs]
    seen = {"path_runs": runs, "counts": {"compiled_call": 9}, "since_spawn": {"graph_break": 1}, "backends": {"0/0": "eager"}}
    return {**seen, "missing": [], "skips": [], **changes}


MEMORY = Memory(
    weights_bytes=1,
    kv_cache_bytes=1,
    peak_bytes=1,
    reserved_bytes=1,
    graph_pool_bytes=0,
    outside_allocator_bytes=0,
    max_sequences=1,
)


def test_proof_says_how_much_of_the_trace_was_walked(small: SmallStudy) -> None:
    proof = proof_of(small.study, small.study.settings("dynamo"), walked(("compiled", 6), ("compiled", 3)), [], MEMORY)
    assert (proof.steps_walked, proof.steps_in_trace) == (9, small.study.plan.num_steps)
    assert (proof.evidence.verdict, proof.evidence.num_compiled_calls, proof.evidence.num_graph_breaks) == ("confirmed", 9, 1)
    assert (proof.claim["transform"], proof.claim["replay"], proof.claim["stability"]) == ("dynamo", "none", "public")


def test_one_step_off_the_path_refutes_the_claim(small: SmallStudy) -> None:
    proof = proof_of(small.study, small.study.settings("dynamo"), walked(("compiled", 8), ("recompiled", 1)), [], MEMORY)
    assert proof.evidence.verdict == "refuted"
    assert proof.evidence.reasons == ["asked for dynamo kernels, replay none; 8 of 9 steps compiled (1 recompiled)"]
