"""A stage that measures one mode: what breaks is a record, what the user does wrong leaves the old one."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from stages.core import atomic
from stages.core.errors import UserError, run_command
from stages.core.records.base import Hashes, Host, read
from stages.core.records.correctness import Answers, CorrectnessRecord
from stages.core.records.load import LoadRecord
from stages.core.records.startup import WarmupRecord
from stages.instruments import hardware
from stages.workers.device_lock import device_lock
from stages.workers.measurement import cache_folder, require_item, write_record
from stages.workers.process import _broken
from tests.workers.small_study import SmallStudy, is_gone, wait_for, worker_of, workers_of, write_study

HASHES = Hashes(config="", environment="", code="")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(tmp_path_factory.mktemp("template"), "eager", "dynamo").home


@pytest.fixture
def small(tmp_path: Path, template: Path, monkeypatch: pytest.MonkeyPatch) -> SmallStudy:
    made = SmallStudy(Path(shutil.copytree(template, tmp_path, dirs_exist_ok=True)))
    for name, value in made.variables.items():
        monkeypatch.setenv(name, value)
    return made


def old_record(small: SmallStudy, stage: str) -> Path:
    file = small.folder / stage / "eager.json"
    file.parent.mkdir(parents=True)
    file.write_text("the old record")
    return file


def test_worker_that_raises_is_a_failed_record(small: SmallStudy) -> None:
    small.edit("dynamo", mode__backend="no_such_backend", mode__transform="dynamo")
    status, text = small.run("warmup", "--mode", "dynamo")
    record = read(small.folder / "warmup" / "dynamo.json", WarmupRecord)
    assert (status, record.status, record.data) == (0, "failed", None), text
    assert "no_such_backend" in record.reason
    assert any("torch" in line for line in record.log_tail)
    assert record.command == "python -m stages.warmup --mode dynamo"


def test_worker_that_was_killed_is_a_failed_record(small: SmallStudy) -> None:
    with small.start("load", "--mode", "eager") as process:
        os.kill(wait_for(lambda: worker_of(process.pid), "the worker"), signal.SIGKILL)
        _, text = process.communicate(timeout=60)
    record = read(small.folder / "load" / "eager.json", LoadRecord)
    assert (process.returncode, record.status, record.reason) == (0, "failed", "the worker was ended by signal SIGKILL"), text


def test_worker_past_its_limit_is_a_failed_record(small: SmallStudy) -> None:
    small.edit("eager", launch__request_timeout_s=0.2)
    status, text = small.run("correctness", "--mode", "eager")
    record = read(small.folder / "correctness" / "eager.json", CorrectnessRecord)
    assert (status, record.status) == (0, "failed"), text
    assert record.reason.startswith("no answer within 0.2 s")


def test_interruption_keeps_the_old_record_and_what_was_measured_and_goes_on_from_there(small: SmallStudy) -> None:
    old = old_record(small, "warmup")
    with small.start("warmup", "--mode", "eager") as process:
        (part,) = wait_for(lambda: list((small.home / "build" / "partial").glob("*/cold-0.json")), "the first start")
        pid = wait_for(lambda: worker_of(process.pid), "the second worker")
        os.killpg(process.pid, signal.SIGINT)
        _, text = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in text
    assert text.splitlines()[-1].startswith("error: interrupted: what was measured so far is kept")
    assert is_gone(pid)
    assert old.read_text() == "the old record"
    kept = part.read_text()
    status, text = small.run("warmup", "--mode", "eager")
    record = read(old, WarmupRecord)
    assert (status, record.status) == (0, "ok"), text
    assert record.data is not None
    assert f'"ready_s": {record.data.starts[0].ready_s}' in kept
    assert not part.parent.exists()


def test_interruption_once_all_is_measured_is_no_failure_of_the_stage(
    small: SmallStudy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With another status than 0 DVC would not take note of the record, and measure it anew."""
    write = atomic.write_json

    def interrupted(*arguments: Any) -> None:
        write(*arguments)
        os.kill(os.getpid(), signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(atomic, "write_json", interrupted)
        answer_nothing(small)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, handler)
    assert read(small.folder / "correctness" / "eager.json", CorrectnessRecord).status == "ok"
    assert "Ctrl-C again ends what comes next" in capsys.readouterr().err.splitlines()[-1]


def test_mode_that_cannot_run_here_is_unavailable(small: SmallStudy) -> None:
    small.edit("dynamo", mode__backend="inductor", mode__transform="inductor", mode__replay="trees", mode__compile_mode="reduce-overhead")
    status, _ = small.run("capture", "--mode", "dynamo")
    text = (small.folder / "capture" / "dynamo.json").read_text()
    assert (status, re.findall(r'"(?:status|reason)": "(.*)"', text)) == (0, ["needs CUDA: a CPU has no CUDA graphs", "unavailable"])


@pytest.mark.parametrize("breaks", ["fsync", "replace"])
def test_full_disk_keeps_the_old_record(
    small: SmallStudy, breaks: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = old_record(small, "correctness")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(old))

    monkeypatch.setattr(os, breaks, full)
    with pytest.raises(SystemExit, match="2"):
        run_command(lambda: answer_nothing(small))
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {old}: No space left on device; free some space")
    assert old.read_text() == "the old record"
    assert [file.name for file in old.parent.iterdir()] == ["eager.json"]


def answer_nothing(small: SmallStudy) -> None:
    """Write a correctness record without measuring."""
    nothing = Answers(verdict="not_checked", checks=[])
    write_record(small.study, "correctness", "eager", CorrectnessRecord, HASHES, lambda partial: nothing)


LOCKING = """
import sys, time
from stages.workers.device_lock import device_lock
with device_lock(sys.argv[1]):
    print(1, flush=True)
    time.sleep(100)
"""


def test_gpu_of_another_study_is_not_used(small: SmallStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    old = old_record(small, "correctness")
    monkeypatch.setattr(tempfile, "tempdir", str(small.home))
    monkeypatch.setattr(hardware, "host", lambda: Host(gpu_uuid="GPU-1"))
    environment = small.folder / "environment.json"
    environment.write_text(environment.read_text().replace('"device": "cpu"', '"device": "cuda"'))
    command = [sys.executable, "-c", LOCKING, "GPU-1"]
    with subprocess.Popen(
        command, cwd=Path(__file__).parents[2], env={**os.environ, "TMPDIR": str(small.home)}, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(UserError, match=f"device: GPU GPU-1 must be free; got locked by process {holder.pid}. Wait"):
            answer_nothing(small)
        assert old.read_text() == "the old record"
        with device_lock("GPU-2"), device_lock(None):
            pass
        holder.kill()
    answer_nothing(small)
    assert read(old, CorrectnessRecord).status == "ok"


def test_orphan_of_a_killed_pipeline_is_not_measured_beside(small: SmallStudy) -> None:
    """`kill -9` of `dvc repro` leaves its stage running; the next one must not share its time and its caches."""
    old = old_record(small, "load")
    with small.start("warmup", "--mode", "eager") as orphan:
        wait_for(lambda: worker_of(orphan.pid), "the worker")
        for command in (("warmup", "--mode", "eager"), ("load", "--mode", "eager")):
            status, text = small.run(*command)
            assert status == 2
            assert re.search(rf"at a time; got locked by process {orphan.pid}\. Wait for it, or end it \(kill {orphan.pid}\)", text)
        assert old.read_text() == "the old record"
        os.killpg(orphan.pid, signal.SIGINT)
    assert small.run("load", "--mode", "eager")[0] == 0


@pytest.mark.parametrize("reason", ["CppCompileError: No space left on device", "the worker ended with exit status 1"])
def test_full_disk_in_a_worker_is_no_fault_of_the_mode(small: SmallStudy, reason: str) -> None:
    old = old_record(small, "correctness")

    def measure(partial: object) -> Answers:
        raise _broken(reason, ["OSError: [Errno 28] No space left on device"])

    with pytest.raises(UserError, match="must have room for caches and logs"):
        write_record(small.study, "correctness", "eager", CorrectnessRecord, HASHES, measure)
    assert old.read_text() == "the old record"


STAGES = {
    "warmup": "mode=eager",
    "capture": "mode=eager",
    "load": "mode=eager",
    "correctness": "mode=eager",
    "steady_state": "factorial=baseline_only",
}


@pytest.mark.parametrize("stage", STAGES)
def test_a_record_that_could_not_be_written_is_not_measured(stage: str, tmp_path: Path) -> None:
    small = write_study(tmp_path, "eager", factorials=("baseline_only",))
    (small.folder / stage).touch()  # in the way of the folder; permissions would not stop root
    status, text = small.run(stage, *f"--{STAGES[stage]}".split("="))
    assert (status, text) == (2, f"error: {small.folder / stage}: File exists; move what lies there, then run again\n")
    assert not list((small.home / "build").glob("logs/*"))


def test_unknown_mode_is_one_line_that_names_the_known_ones(small: SmallStudy) -> None:
    status, text = small.run("load", "--mode", "compile")
    assert (status, text.count("\n")) == (2, 1)
    assert "--mode: must be one that params.yaml names; got compile. Composed: dynamo, eager." in text


def test_name_is_not_a_path(small: SmallStudy) -> None:
    (small.folder / "config" / "factorial").mkdir(exist_ok=True)
    (small.folder / "config" / "factorial" / "x.yaml").touch()
    with pytest.raises(UserError, match=r"must be one that params.yaml names; got factorial/x"):
        require_item("factorial/x", "mode", small.folder / "config")


def test_broken_composed_file_is_one_line(small: SmallStudy) -> None:
    (small.folder / "config" / "eager.yaml").write_text("name: [")
    for stage in ("warmup", "capture", "load", "correctness"):
        status, text = small.run(stage, "--mode", "eager")
        assert (status, text.count("\n")) == (2, 1), text


def test_caches_are_shared_by_the_stages_of_a_mode_and_by_nothing_else(small: SmallStudy) -> None:
    study = small.study
    folder = cache_folder(study, study.settings("dynamo"))
    assert folder == cache_folder(small.study, small.study.settings("dynamo"))
    assert folder != cache_folder(study, study.settings("eager"))
    small.edit("dynamo", measure__preset="other", slo__ttft_ms=5.0)
    assert folder == cache_folder(study, small.study.settings("dynamo"))
    small.edit("dynamo", precision="bf16")
    assert folder != cache_folder(study, small.study.settings("dynamo"))
    study.environment["torch"] = "another"
    assert folder != cache_folder(study, study.settings("dynamo"))


def test_no_worker_is_left() -> None:
    assert workers_of(os.getpid(), recursive=True) == []


def test_a_process_that_is_gone_has_no_worker_and_is_none() -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    assert workers_of(ended.pid) == []
    assert is_gone(ended.pid)
