"""A worker answers, fails with a reason, or is gone; its parent never waits without a limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from stages.core import progress
from stages.workers.measurement import worker
from stages.workers.process import Worker, WorkerFailed
from tests.workers.small_study import ROOT, SmallStudy, is_gone, wait_for, write_study


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    return write_study(tmp_path_factory.mktemp("small"), "eager")


@pytest.fixture
def started(small: SmallStudy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    monkeypatch.setenv("OPMODE_BUILD", small.variables["OPMODE_BUILD"])
    with worker(small.study, small.study.settings("eager"), "test") as one:
        yield one


def broken(small: SmallStudy, **changes: str) -> Worker:
    """A worker that cannot start: its order lacks everything else."""
    return Worker({"label": "broken", **changes}, {}, timeout_s=30)


def test_worker_answers_fails_and_answers_again_until_its_pipe_is_closed(started: Worker) -> None:
    report = started.ready()
    assert report["ready_s"] > 0
    assert report["parameters"] > 1000
    with pytest.raises(WorkerFailed, match="no_such_function") as failure:
        started.ask("stages.workers.timing:no_such_function")
    assert any("AttributeError" in line for line in failure.value.log_tail)
    with pytest.raises(WorkerFailed, match="AssertionError: os:getpid is not an activity of a worker"):
        started.ask("os:getpid")
    with pytest.raises(WorkerFailed, match="TypeError"):
        started.ask("stages.workers.timing:time_block", shape="decode/1")
    block = started.ask("stages.workers.timing:time_block", shape="decode/1", num_calls=3, pipelined_calls=2, context_tokens=8)
    assert (len(block["wall_us"]), block["device_us"], block["voided"]) == (3, [], "")
    started.close()
    assert started._process.returncode == 0


def test_worker_that_was_killed_is_a_failure_with_the_signal(started: Worker) -> None:
    started._process.send_signal(signal.SIGKILL)
    with pytest.raises(WorkerFailed, match="the worker was ended by signal SIGKILL"):
        started.ready()
    started._process.wait()
    with pytest.raises(WorkerFailed, match=r"the worker (died before it could be asked|was ended)"):
        started.ask("stages.workers.timing:time_block")


def test_worker_that_hangs_is_ended_at_its_limit(started: Worker) -> None:
    started._process.send_signal(signal.SIGSTOP)
    started.timeout_s = 0.3
    with pytest.raises(WorkerFailed, match=r"no answer within 0.3 s; the worker was ended"):
        started.ready()
    assert started._process.wait(timeout=5) == -signal.SIGKILL


@pytest.mark.parametrize(("is_timed", "is_said"), [(False, True), (True, False)])
def test_a_long_wait_is_said_but_never_beside_a_timed_worker(
    is_timed: bool, is_said: bool, started: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines: list[float] = []
    monkeypatch.setattr(progress, "SILENT_S", 0.05)
    monkeypatch.setattr(progress, "still", lambda silent_s=0.0: lines.append(silent_s))
    started.timed = is_timed
    assert started.ready()["ready_s"] > 0.5
    assert bool(lines) == is_said
    lines.clear()
    started.ask("stages.workers.timing:time_block", shape="decode/1", num_calls=3, pipelined_calls=2, context_tokens=8)
    assert lines[0] == 0.025  # before it is asked


def test_worker_that_does_not_listen_is_ended_at_its_limit(started: Worker) -> None:
    started._process.send_signal(signal.SIGSTOP)
    started.timeout_s = 0.3
    with pytest.raises(WorkerFailed, match=r"took no message within 0.3 s; the worker was ended"):
        started.ask("stages.workers.timing:time_sequence", requests=["x" * 1000] * 1000)
    assert started._process.wait(timeout=5) == -signal.SIGKILL


def test_worker_that_cannot_start_says_why(small: SmallStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPMODE_BUILD", small.variables["OPMODE_BUILD"])
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR", raising=False)
    with broken(small) as one, pytest.raises(WorkerFailed, match="KeyError: 'TORCHINDUCTOR_CACHE_DIR'") as failure:
        one.ready()
    assert any("start_service" in line for line in failure.value.log_tail)


def test_worker_that_writes_and_dies_leaves_its_last_lines(small: SmallStudy, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPMODE_BUILD", small.variables["OPMODE_BUILD"])
    (tmp_path / "sitecustomize.py").write_text("import os\nfor i in range(30): print(i, flush=True)\nos._exit(7)\n")
    with (
        Worker({"label": "dying"}, {"PYTHONPATH": str(tmp_path)}, 30) as one,
        pytest.raises(WorkerFailed, match="exit status 7") as failure,
    ):
        one.ready()
    assert failure.value.log_tail == [str(index) for index in range(10, 30)]


PARENT = """
import sys, time
from pathlib import Path
from stages.workers.measurement import Study, worker
study = Study(Path(sys.argv[1]))
one = worker(study, study.settings("eager"), "orphan")
one.ready()
print(one._process.pid, flush=True)
time.sleep(100)
"""


def test_worker_ends_with_its_parent_even_when_it_does_not_listen(small: SmallStudy) -> None:
    command = [sys.executable, "-c", PARENT, str(small.folder)]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **small.variables}, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        psutil.Process(pid).suspend()  # it cannot notice a closed pipe
        parent.kill()
        wait_for(lambda: is_gone(pid), "the end of the orphan", 10)
