"""The pipeline itself: one real smoke study, and which stages each kind of edit makes DVC run again.

The study is made once, in a copy of the project with a git history of its own. The table of edits is read from
`dvc status` after composing: what depends on a stage listed there runs when that stage's record changes.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from stages.core.records.base import read
from stages.core.records.correctness import CorrectnessRecord
from stages.core.records.load import LoadRecord
from stages.core.records.path import CaptureRecord
from stages.core.records.startup import WarmupRecord
from stages.core.records.steps import SteadyStateRecord

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("stages", "conf", ".dvc/config", ".dvc/plots", "dvc.yaml", ".dvcignore", ".gitignore")
PARAMS = {
    "name": "smoke",
    "model": "tiny",
    "trace": "smoke",
    "modes": ["eager", "dynamo"],
    "factorials": ["inductor_manual"],
    "measure": "smoke",
    "device": "cpu",
    "precision": "fp32",
    "device_memory_bytes": None,
    "slo": {"ttft_ms": 1000, "tpot_ms": 50},
    "arrival_rates": ["recorded"],
    "lifetimes_s": [60, 3600],
    "gate": {"baseline": None},
    "overrides": [],
}
MODES = ("eager", "dynamo")
DYNAMO = {f"{stage}@dynamo" for stage in ("warmup", "capture", "load", "correctness")} | {"steady_state@inductor_manual"}
MEASURING = DYNAMO | {f"{stage}@eager" for stage in ("warmup", "capture", "load", "correctness")}

pytestmark = pytest.mark.timeout(900)  # the first test waits for the study


class Project:
    """A copy of the project: run commands in it, edit files in it and put them back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.study = folder / "reports" / "latest"

    def run(self, *command: str) -> str:
        environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        return done.stdout

    def stage(self, name: str) -> str:
        return self.run(sys.executable, "-m", f"stages.{name}")

    def repro(self) -> list[str]:
        """Bring the report up to date; the stages that ran."""
        lines = self.run("dvc", "repro", "report").splitlines()
        return [line.split("'")[1] for line in lines if line.startswith("Running stage")]

    def stale(self) -> set[str]:
        """What DVC would run now, the always-changed environment apart."""
        status: dict[str, Any] = json.loads(self.run("dvc", "status", "--json", "--with-deps", "report"))
        return {stage for stage, reasons in status.items() if reasons != ["always changed"]}

    def commit(self) -> None:
        self.run("git", "add", "--all")
        self.run("git", "-c", "user.name=test", "-c", "user.email=test@example.org", "commit", "--quiet", "--message", "study")

    @contextmanager
    def edited(self, file: str, edit: Callable[[str], str]) -> Iterator[None]:
        """One file changed, then everything as committed again."""
        path = self.folder / file
        before = path.read_text(encoding="utf-8")
        path.write_text(edit(before), encoding="utf-8")
        assert path.read_text(encoding="utf-8") != before, f"the edit of {file} changed nothing"
        try:
            yield
        finally:
            self.run("git", "checkout", "--quiet", "--", ".")


def copied(folder: Path, params: dict[str, Any]) -> Project:
    for name in COPIED:
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(source, target)
    (folder / "params.yaml").write_text(yaml.safe_dump(params, sort_keys=False), encoding="utf-8")
    project = Project(folder)
    project.run("git", "init", "--quiet")
    return project


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """The smoke study, measured and committed."""
    made = copied(tmp_path_factory.mktemp("study") / "project", PARAMS)
    made.repro()
    made.commit()
    return made


def replaced(old: str, new: str) -> Callable[[str], str]:
    return lambda text: text.replace(old, new, 1)


EDITS = {
    "nothing": (None, None, set()),
    "model": ("conf/model/tiny.yaml", replaced("seed: 0", "seed: 1"), {"compose", "trace", "report", *MEASURING}),
    "one mode": ("conf/mode/dynamo.yaml", replaced("stability: public", "stability: prototype"), {"compose", "report", *DYNAMO}),
    "code of one mode": (
        "stages/modes/compiled.py",
        replaced("num_shapes + 1", "num_shapes + 2"),
        {"compose", "report", *DYNAMO},
    ),
    "code of one stage": (
        "stages/workers/serving_loop.py",
        replaced("IDLE_SLEEP_S = 0.0005", "IDLE_SLEEP_S = 0.0006"),
        {"compose", "report", "load@eager", "load@dynamo"},
    ),
    "a comment": ("stages/workers/timing.py", replaced("SETTLING_CALLS = 3", "SETTLING_CALLS = 3  # a comment"), {"compose"}),
    "a view": ("stages/views/words.py", lambda text: text + "\nMORE = 1\n", {"compose", "report"}),
    "the analysis": ("stages/analysis/lifetimes.py", lambda text: text + "\nMORE = 1\n", {"compose", "attribution", "report"}),
    "limits": (
        "params.yaml",
        replaced("tpot_ms: 50", "tpot_ms: 60"),
        {"compose", "load@eager", "load@dynamo", "attribution", "report"},
    ),
    "another GPU": (
        "reports/latest/environment.json",
        replaced('"gpu": null', '"gpu": "another"'),
        {"environment", "compose", "attribution", *MEASURING},
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_runs_the_stages_that_it_can_change_and_no_other(project: Project, edit: str) -> None:
    file, change, expected = EDITS[edit]
    if file is None or change is None:
        assert project.stale() == expected
        return
    with project.edited(file, change):
        project.stage("compose")
        assert project.stale() == expected


def test_second_run_measures_nothing(project: Project) -> None:
    assert project.repro() == ["environment"]
    assert project.run("git", "status", "--porcelain") == ""


def test_fresh_clone_on_the_same_machine_measures_nothing(project: Project, tmp_path: Path) -> None:
    project.run("git", "clone", "--quiet", ".", str(tmp_path / "clone"))
    assert Project(tmp_path / "clone").repro() == ["environment"]


def test_cuda_without_a_gpu_stops_before_anything_is_replaced(project: Project) -> None:
    with project.edited("params.yaml", replaced("device: cpu", "device: cuda")):
        done = subprocess.run(["dvc", "repro", "report"], cwd=project.folder, capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert "error: device: cuda needs a GPU" in done.stderr
        assert "Traceback" not in done.stderr
        assert project.run("git", "status", "--porcelain").split() == ["M", "params.yaml"]


@pytest.mark.parametrize("mode", MODES)
def test_starts_are_proved_and_their_phases_sum_to_ready(project: Project, mode: str) -> None:
    record = read(project.study / "warmup" / f"{mode}.json", WarmupRecord)
    assert record.data is not None
    assert [start.cache for start in record.data.starts] == ["cold", "warm"]
    for start in record.data.starts:
        assert start.proved, start.proof
        assert 0 <= start.unaccounted_s <= 0.05 * start.ready_s
        assert start.first_request_s > start.ready_s
        assert {shape: len(calls) for shape, calls in start.calls_s.items()} == {"prefill/32": 3, "decode/2": 3, "decode/1": 3}
        assert (start.phases.dynamo_s > 0) == (mode == "dynamo")


@pytest.mark.parametrize(("mode", "path"), [("eager", "eager"), ("dynamo", "compiled")])
def test_every_step_of_the_trace_took_the_claimed_path(project: Project, mode: str, path: str) -> None:
    record = read(project.study / "capture" / f"{mode}.json", CaptureRecord)
    assert record.data is not None
    proof = record.data
    assert (proof.evidence.verdict, set(proof.evidence.path_counts)) == ("confirmed", {path})
    assert proof.steps_walked == proof.steps_in_trace == sum(run.count for run in proof.path_runs)
    assert proof.evidence.num_compiled_calls == (proof.steps_walked if mode == "dynamo" else 0)
    for step in proof.profile:
        idle_us = step.host_launch_us + step.host_python_us + step.host_wait_us + step.host_compile_us
        assert step.busy_us + idle_us == pytest.approx(step.wall_us)
        assert 0 < step.busy_us < step.wall_us
        assert any("scaled_dot_product" in name for name in step.attention_kernels)


def test_cells_that_were_not_asked_for_are_skipped_and_the_others_stand_in_balanced_blocks(project: Project) -> None:
    record = read(project.study / "steady_state" / "inductor_manual.json", SteadyStateRecord)
    assert record.data is not None
    rotations = record.data
    statuses = {cell.cell: cell.status for cell in rotations.cells}
    assert {cell for cell, status in statuses.items() if status == "ok"} == {"E", "dynamo"}
    assert set(statuses.values()) == {"ok", "skipped"}
    shapes, num_rotations = ("decode/1", "decode/2", "prefill/32"), 2
    placed = {(block.shape, block.rotation_index, block.order_index): block.cell for block in rotations.blocks}
    assert len(placed) == len(rotations.blocks) == len(shapes) * num_rotations * 2
    for shape in shapes:
        assert [placed[shape, 0, index] for index in (0, 1)] == [placed[shape, 1, index] for index in (1, 0)] == ["E", "dynamo"]
    assert all(len(block.wall_us) == 5 and min(block.wall_us) > 0 and not block.voided for block in rotations.blocks)
    assert [run.cell for run in rotations.sequences] == ["E", "dynamo", "dynamo", "E"]


@pytest.mark.parametrize("mode", MODES)
def test_every_request_was_served(project: Project, mode: str) -> None:
    record = read(project.study / "load" / f"{mode}.json", LoadRecord)
    assert record.data is not None
    (run,) = record.data.runs
    assert (run.num_sent, run.num_completed, run.num_prefill_steps) == (6, 6, 6)
    assert sum(run.batch_histogram.values()) == run.num_decode_steps
    decoded = sum(int(size) * count for size, count in run.batch_histogram.items())
    assert decoded == sum(request.output_tokens - 1 for request in run.requests)
    assert run.num_compiles_during == 0


@pytest.mark.parametrize("mode", MODES)
def test_answers_were_checked_on_every_shape(project: Project, mode: str) -> None:
    record = read(project.study / "correctness" / f"{mode}.json", CorrectnessRecord)
    assert record.data is not None
    assert record.data.verdict == "correct"
    assert {check.subject for check in record.data.checks} >= {"prefill/32", "decode/1", "decode/2"}
    names = {check.name for check in record.data.checks}
    assert ("bit_identical_to_eager" in names) == (mode == "eager")


def test_report_answers_from_the_records(project: Project) -> None:
    study = json.loads((project.study / "study.json").read_text(encoding="utf-8"))
    assert {mode: part["status"] for mode, part in study["modes"].items()} == {"eager": "ok", "dynamo": "ok"}
    assert (project.study / "report.html").stat().st_size > 10_000
    assert "eager" in (project.study / "report.md").read_text(encoding="utf-8")


def test_verdict_is_printed_and_views_are_drawn_again_byte_for_byte(project: Project) -> None:
    sentence = json.loads((project.study / "study.json").read_text(encoding="utf-8"))["verdict"]["sentence"]
    printed = project.run(sys.executable, "-m", "stages.report", "--print")
    assert " ".join(sentence.split()) in " ".join(printed.split())
    assert printed.rstrip().endswith("reports/latest/report.html")
    views = [*project.study.glob("report.*"), *project.study.glob("figures/*"), project.study / "metrics.json"]
    for view in views:
        view.unlink()
    project.run(sys.executable, "-m", "stages.report", "--redraw", str(project.study))
    assert len(views) > 3
    assert project.run("git", "status", "--porcelain") == ""


def refused(project: Project) -> str:
    """What report says when it will not report."""
    command = [sys.executable, "-m", "stages.report"]
    done = subprocess.run(command, cwd=project.folder, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert project.run("git", "diff", "--name-only", "--", "reports/latest/study.json") == ""
    return done.stderr


def test_report_refuses_a_record_of_another_configuration(project: Project) -> None:
    with project.edited("reports/latest/config/dynamo.yaml", replaced("request_timeout_s: 450", "request_timeout_s: 451")):
        assert "warmup/dynamo.json: must come from the present configuration, environment and code; got another config." in refused(project)


def test_report_says_what_to_run_when_attribution_is_missing(project: Project) -> None:
    with project.edited("reports/latest/attribution.json", lambda text: text + " "):
        (project.study / "attribution.json").unlink()
        assert "attribution.json: must exist; got no such file. Run dvc repro first." in refused(project)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_smoke_study_with_inductor_on_cold_caches(tmp_path: Path) -> None:
    made = copied(tmp_path / "project", {**PARAMS, "modes": ["eager", "compile"], "overrides": ["measure.warmup.artifact_starts=1"]})
    ran = made.repro()
    assert {"warmup@compile", "steady_state@inductor_manual", "attribution", "report"} <= set(ran)
    warmup = read(made.study / "warmup" / "compile.json", WarmupRecord)
    capture = read(made.study / "capture" / "compile.json", CaptureRecord)
    correctness = read(made.study / "correctness" / "compile.json", CorrectnessRecord)
    assert warmup.data is not None
    assert capture.data is not None
    assert correctness.data is not None
    cold, warm, artifact = warmup.data.starts
    assert [start.cache for start in (cold, warm, artifact)] == ["cold", "warm", "artifact"]
    assert all(start.proved for start in (cold, warm, artifact)), [start.proof for start in (cold, warm, artifact)]
    assert cold.phases.kernel_compile_s > warm.phases.kernel_compile_s
    assert cold.cache_use.fx_graph_misses > 0 == warm.cache_use.fx_graph_misses
    assert capture.data.evidence.verdict == "confirmed", capture.data.evidence.reasons
    assert correctness.data.verdict == "correct"
    assert made.repro() == ["environment"]
