"""Faults that need CUDA, each through the public command, with CUDAGraph Trees or a capture of ours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stages.core import atomic
from stages.core.records.path import PathProof
from stages.environment import describe
from tests.planted.planted_study import PlantedStudy, copy_project
from tests.workers.small_study import write_study

pytestmark = [pytest.mark.slow, pytest.mark.gpu]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_project(tmp_path_factory.mktemp("project"))


@pytest.fixture
def proof(project: Path, tmp_path: Path) -> Callable[..., PathProof]:
    """Capture one mode on the GPU with these edits; what it found."""

    def captured(mode: str, **changes: Any) -> PathProof:
        study = PlantedStudy(write_study(tmp_path, *dict.fromkeys(("eager", mode))).home, project=project)
        atomic.write_json(study.folder / "environment.json", describe("cuda"))
        study.plant(mode, device="cuda", **changes)
        record = study.captured(mode)
        assert record.data, record.reason
        return record.data

    return captured


def test_healthy_trees_are_confirmed(proof: Callable[..., PathProof]) -> None:
    found = proof("cudagraph_trees")
    assert found.evidence.verdict == "confirmed", found.evidence.reasons
    assert found.churn
    assert (found.churn.verdict, found.churn.num_events) == ("settled", 0)


def test_cache_passed_as_a_plain_mutated_input_keeps_trees_from_replaying(proof: Callable[..., PathProof]) -> None:
    found = proof("cudagraph_trees", mode_class="FreshCaches").evidence
    assert found.verdict == "refuted"
    assert "0 of" in found.reasons[0]
    assert "mutated inputs" in found.reasons[0]


def test_graph_break_under_trees_is_told(proof: Callable[..., PathProof]) -> None:
    found = proof("cudagraph_trees", model_kind="Branches")
    assert found.evidence.verdict == "refuted" or any(step.graph_launches_per_call > 1 for step in found.profile)
    assert any(finding.kind == "graph_break" for finding in found.evidence.findings)


def test_weights_swapped_by_pointer_record_again_every_step(proof: Callable[..., PathProof]) -> None:
    found = proof("cudagraph_trees", mode_class="SwapsWeights")
    assert found.evidence.verdict == "refuted"
    assert found.evidence.path_counts.get("recorded", 0) > 0
    assert found.churn
    assert found.churn.verdict == "not_settled"


def test_captured_eager_mode_is_healthy(proof: Callable[..., PathProof]) -> None:
    found = proof("cuda_graph")
    assert found.evidence.verdict == "confirmed", found.evidence.reasons
    assert all(step.graph_launches_per_call == 1 for step in found.profile)
