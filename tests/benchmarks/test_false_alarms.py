"""Repeats of the correctness stage: each on another draw, alarms and broken workers counted, nothing written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import false_alarms
from stages.core.errors import UserError
from stages.core.records.correctness import Answers, Check
from stages.workers.process import WorkerFailed
from tests.workers.small_study import SmallStudy, write_study


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    return write_study(tmp_path_factory.mktemp("small"), "eager", "cuda_graph")


def found(verdict: Any) -> Answers:
    checks = [Check(name=name, subject="decode/1", verdict=one, value=0.5, limit=0.0, num_calls=1) for name, one in verdict.items()]
    return Answers(verdict="correct", checks=checks, num_probes_run=2)


def ran(small: SmallStudy, monkeypatch: pytest.MonkeyPatch, outcomes: list[Any]) -> tuple[int, list[int]]:
    """Status of `main` with these outcomes of the stage, and the draws that it asked for."""
    draws = []

    def measure(study: Any, settings: Any, partial: Any) -> Answers:
        draws.append(settings.seed)
        outcome = outcomes[len(draws) - 1]
        if isinstance(outcome, Exception):
            raise outcome
        answers: Answers = outcome
        return answers

    monkeypatch.setattr(false_alarms, "measure", measure)
    command = ["false_alarms", "--study", str(small.folder), "--modes", "eager", "cuda_graph", "--repeats", str(len(outcomes))]
    monkeypatch.setattr(sys, "argv", command)
    return false_alarms.main(), draws


def test_healthy_repeats_are_counted_and_the_status_is_0(
    small: SmallStudy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    healthy = found({"a": "pass", "b": "not_run", "c": "reported"})
    before = sorted(small.folder.rglob("*"))
    assert ran(small, monkeypatch, [healthy] * 3) == (0, [1, 2, 3])
    told = capsys.readouterr().out
    assert "eager: 3 repeats, 6 probes executed, 6 checks, 0 alarms, 0 broken workers" in told
    assert "cuda_graph: unavailable: needs CUDA" in told
    assert sorted(small.folder.rglob("*")) == before


@pytest.mark.parametrize("bad", [found({"a": "fail"}), WorkerFailed("died", [])], ids=["alarm", "broken"])
def test_one_alarm_or_broken_worker_is_status_1(bad: Any, small: SmallStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    status, draws = ran(small, monkeypatch, [found({"a": "pass"}), bad])
    assert (status, draws) == (1, [1, 2])


def test_folder_without_a_composed_study_is_a_user_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["false_alarms", "--study", str(tmp_path)])
    with pytest.raises(UserError, match="--study: must be the folder of a composed study"):
        false_alarms.main()
