"""Repeats of the correctness stage: each on another draw, alarms and broken workers counted, nothing written."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import false_alarms
from stages.core.errors import UserError
from stages.core.records.correctness import Answers, Check, ProbeRun
from stages.workers.probes.registry import PROBES
from stages.workers.process import WorkerFailed
from tests.workers.small_study import ROOT, SmallStudy, write_study

IDLE = {"custom_ops", "unplanned_size", "host_work"}
"""Of known_answer_adapters: no custom operator; a size that Dynamo guards; a package takes no step with Python in it."""
COUNTS = ("repeats", "probes", "checks", "alarms", "broken")
RUNS = (("padding", 2), ("sampling", 1), ("custom_ops", 0))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    return write_study(tmp_path_factory.mktemp("small"), "eager", "cuda_graph")


def found(verdict: Any) -> Answers:
    checks = [Check(name=name, subject="decode/1", verdict=one, value=0.5, limit=0.0, num_calls=1) for name, one in verdict.items()]
    probes = [ProbeRun(name=name, hazards=[], about="", verdict="pass", num_checks=num, duration_s=1) for name, num in RUNS]
    return Answers(verdict="correct", checks=checks, probes=probes, num_probes_run=2)


def ran(small: SmallStudy, monkeypatch: pytest.MonkeyPatch, outcomes: list[Any], *more: str) -> tuple[int, list[int]]:
    """Status of `main` with these outcomes of the stage, and the draws that it asked for."""
    draws = []

    def measure(study: Any, settings: Any, partial: Any) -> Answers:
        draws.append(settings.seed)
        outcome = outcomes[len(draws) - 1]
        if isinstance(outcome, BaseException):
            raise outcome
        answers: Answers = outcome
        return answers

    monkeypatch.setattr(false_alarms, "measure", measure)
    command = ["false_alarms", "--study", str(small.folder), "--modes", "eager", "cuda_graph", "--repeats", str(len(outcomes)), *more]
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


def test_what_each_mode_gave_is_kept_where_asked(small: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = [found({"a": "pass"}), found({"a": "fail"}), WorkerFailed("died", [])]
    assert ran(small, monkeypatch, outcomes, "--out", str(tmp_path))[0] == 1
    kept = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in (tmp_path / "false_alarms").glob("*.json")}
    assert set(kept) == {"eager", "cuda_graph"}
    eager = kept["eager"]
    assert eager["counts"] == {"repeats": 3, "probes": 4, "checks": 2, "alarms": 1, "broken": 1}
    assert eager["executed"] == {"padding": 2, "sampling": 2}
    assert [(alarm["draw"], alarm["name"]) for alarm in eager["alarms"]] == [(2, "a")]
    assert eager["broken"] == [{"draw": 3, "reason": "died"}]
    assert kept["cuda_graph"]["unavailable"].startswith("needs CUDA")
    told = (tmp_path / "false_alarms.md").read_text(encoding="utf-8")
    assert "| eager | tiny | fp32 | 3 | 4 | 2 | 1 | 1 |" in told
    assert "| padding | 0 | 2 |" in told
    assert "cuda_graph: unavailable: needs CUDA" in told


def test_table_has_the_modes_that_another_run_left_there(small: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = small.study.settings("eager")
    earlier = false_alarms.document(small.study, settings, false_alarms.Repeats()) | {"mode": "compile"}
    false_alarms.write(tmp_path, earlier)
    assert ran(small, monkeypatch, [found({"a": "pass"})], "--out", str(tmp_path))[0] == 0
    rows = [line.split(" | ")[0] for line in (tmp_path / "false_alarms.md").read_text(encoding="utf-8").splitlines()[4:7]]
    assert rows == ["| compile", "| cuda_graph", "| eager"]


def test_no_probe_at_all_is_status_1(small: SmallStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = found({}).model_copy(update={"num_probes_run": 0})
    assert ran(small, monkeypatch, [nothing])[0] == 1


def test_folder_without_a_composed_study_is_a_user_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["false_alarms", "--study", str(tmp_path)])
    with pytest.raises(UserError, match="--study: must be the folder of a composed study"):
        false_alarms.main()


def test_kept_repeats_on_the_cpu_raised_nothing() -> None:
    files = (ROOT / "reports" / "studies" / "cpu-correctness" / "false_alarms").glob("*.json")
    kept = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}
    assert {"eager", "dynamo", "compile"} <= set(kept)
    for one in kept.values():
        assert (one["counts"]["repeats"], one["counts"]["alarms"], one["counts"]["broken"]) == (20, 0, 0)
        assert one["counts"]["probes"] == sum(one["executed"].values())
        assert set(one["executed"].values()) == {20}
        assert set(one["executed"]) >= {probe.name for probe in PROBES} - IDLE


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--repeats", "0"), "--repeats: must be 1 or more"),
        (("--modes", "eager", "nosuch"), "nosuch"),
        (("--out", "FILE"), "FILE"),
        (("--out", "BROKEN"), "must be JSON"),
        (("--out", "OTHER"), "must be the counts of one mode"),
    ],
)
def test_what_cannot_be_kept_or_run_is_refused_before_anything_is_measured(
    more: tuple[str, ...], says: str, small: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "FILE").write_text("")
    for name, text in (("BROKEN", "{"), ("OTHER", "{}")):
        (tmp_path / name / "false_alarms").mkdir(parents=True)
        (tmp_path / name / "false_alarms" / "eager.json").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(false_alarms, "measure", lambda *_: pytest.fail("measured"))
    monkeypatch.setattr(sys, "argv", ["false_alarms", "--study", str(small.folder), *more])
    with pytest.raises((UserError, OSError), match=says):
        false_alarms.main()


def test_study_composed_for_another_torch_is_refused(small: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other"
    shutil.copytree(small.folder, other)
    environment = json.loads((other / "environment.json").read_text(encoding="utf-8"))
    (other / "environment.json").write_text(json.dumps(environment | {"torch": "2.99.9"}))
    monkeypatch.setattr(sys, "argv", ["false_alarms", "--study", str(other)])
    with pytest.raises(UserError, match=r"must be composed for torch .*, which runs here; got 2\.99\.9"):
        false_alarms.main()


def test_every_repeat_is_kept_at_once_and_a_mode_that_cannot_run_leaves_an_earlier_file_alone(
    small: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ran(small, monkeypatch, [found({"a": "pass"})], "--out", str(tmp_path))[0] == 0
    file = tmp_path / "false_alarms" / "cuda_graph.json"
    earlier = json.loads(file.read_text(encoding="utf-8")) | {"unavailable": "", "counts": dict.fromkeys(COUNTS, 7)}
    file.write_text(json.dumps(earlier))
    with pytest.raises(KeyboardInterrupt):
        ran(small, monkeypatch, [found({"a": "pass"}), KeyboardInterrupt()], "--out", str(tmp_path))
    assert json.loads((tmp_path / "false_alarms" / "eager.json").read_text(encoding="utf-8"))["counts"]["repeats"] == 1
    ran(small, monkeypatch, [found({"a": "pass"})], "--out", str(tmp_path))
    assert json.loads(file.read_text(encoding="utf-8"))["counts"] == dict.fromkeys(COUNTS, 7)
