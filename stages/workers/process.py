"""The parent's side of a worker: a fresh process, spawned, asked over a pipe, never waited for without a limit.

The parent blocks in `select`; it does not spin and starts no thread. It wakes for a moment every ten seconds to say that
it waits, but never beside a worker that is timed. Messages are JSON lines on two pipes of their
own; stdout and stderr of the worker go to a log file whose last lines a failure carries.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from stages.core import paths, progress
from stages.core.errors import UserError

LOG_TAIL_LINES = 20
DEVICE_ORDER = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""torch's default puts the fastest GPU first; NVML counts along the bus (`stages.instruments.hardware`)."""


class WorkerFailed(Exception):
    """The worker raised, died or ran past its limit. `log_tail`: the last lines it wrote."""

    def __init__(self, reason: str, log_tail: list[str]) -> None:
        """Keep both parts for the record."""
        super().__init__(reason)
        self.reason, self.log_tail = reason, log_tail


class Worker:
    """One process with one model in one mode. Use as a context manager; `ready` is its report when it is ready.

    `timed`: what it is asked takes its time alone; set it once the worker is ready.
    """

    def __init__(self, order: Mapping[str, Any], environment: Mapping[str, str], timeout_s: float) -> None:
        """Spawn it without waiting. `order`: what to hold (see `stages.workers.child`); `timeout_s`: limit a request."""
        self.timeout_s = timeout_s
        self.timed = False
        self.log = paths.build() / "logs" / f"{order['label']}-{os.getpid()}-{time.monotonic_ns()}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        child_reads, self._write = os.pipe()
        self._read, child_writes = os.pipe()
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "stages.workers.child", str(child_reads), str(child_writes)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(child_reads, child_writes),
                env={**os.environ, **DEVICE_ORDER, **environment, "OPMODE_ROOT": str(paths.root())},
                cwd=Path(__file__).resolve().parents[2],
            )
        os.close(child_reads)
        os.close(child_writes)
        os.set_blocking(self._write, False)  # a write to a worker that does not read must not wait for ever
        self._buffer = b""
        self.spawned_s = time.monotonic()
        self._send({**order, "spawned_s": self.spawned_s})

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def ready(self) -> dict[str, Any]:
        """Wait until it is ready; its startup report. Raises WorkerFailed."""
        report: dict[str, Any] = self._receive()
        return report

    def ask(self, activity: str, **arguments: Any) -> Any:
        """Run `module:function` of `stages.workers` in the worker; its JSON result. Raises WorkerFailed."""
        progress.still(progress.SILENT_S / 2)
        self._send({"activity": activity, "arguments": arguments})
        return self._receive()

    def close(self) -> None:
        """End it: by closing its pipe, and by force if that is not enough."""
        for descriptor in (self._write, self._read):
            _close(descriptor)
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _send(self, message: Mapping[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        deadline = time.monotonic() + self.timeout_s
        try:
            while data:
                left = deadline - time.monotonic()
                if left <= 0 or not select.select([], [self._write], [], left)[1]:
                    self._process.kill()
                    raise self._failure(f"took no message within {self.timeout_s:g} s; the worker was ended")
                data = data[os.write(self._write, data) :]
        except BrokenPipeError as error:
            raise self._failure("the worker died before it could be asked") from error

    def _receive(self) -> Any:
        deadline = time.monotonic() + self.timeout_s
        while b"\n" not in self._buffer:
            if not self._answers(deadline):
                self._process.kill()
                raise self._failure(f"no answer within {self.timeout_s:g} s; the worker was ended")
            data = os.read(self._read, 1 << 20)
            if not data:
                raise self._failure(self._death())
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer = json.loads(line)
        if "error" in answer:
            raise _broken(answer["error"], answer["trace"][-LOG_TAIL_LINES:])
        return answer["result"]

    def _answers(self, deadline: float) -> bool:
        """Wait until there is something to read; False at the deadline."""
        while (left := deadline - time.monotonic()) > 0:
            if select.select([self._read], [], [], left if self.timed else min(left, progress.SILENT_S))[0]:
                return True
            progress.still()
        return False

    def _death(self) -> str:
        status = self._process.wait()
        if status < 0:
            return f"the worker was ended by signal {signal.Signals(-status).name}"
        return f"the worker ended with exit status {status}"

    def _failure(self, reason: str) -> WorkerFailed | UserError:
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        return _broken(reason, lines[-LOG_TAIL_LINES:])


def _broken(reason: str, log_tail: list[str]) -> WorkerFailed | UserError:
    """A full disk is no fault of the mode: no record says that it failed."""
    if any(os.strerror(errno.ENOSPC) in text for text in (reason, *log_tail)):
        return UserError(str(paths.build()), "must have room for caches and logs", reason, "Free some space, then run again.")
    return WorkerFailed(reason, log_tail)


def _close(descriptor: int) -> None:
    try:
        os.close(descriptor)
    except OSError as error:
        if error.errno != 9:  # closed already
            raise
