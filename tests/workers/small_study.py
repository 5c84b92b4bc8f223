"""A study that can be measured at once: the tiny model, the smoke trace, nothing measured yet."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml

from stages.compose import compose_study
from stages.core import atomic
from stages.core.settings import Params, read_params
from stages.environment import describe
from stages.traces.composed import plan_of
from stages.workers.measurement import Study

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class SmallStudy:
    """Its folder, and commands run in it."""

    home: Path

    @property
    def folder(self) -> Path:
        return self.home / "study"

    @property
    def study(self) -> Study:
        return Study(self.folder)

    @property
    def variables(self) -> dict[str, str]:
        """What points every command at this study."""
        names = {"OPMODE_STUDY": "study", "OPMODE_BUILD": "build", "OPMODE_PARAMS": "params.yaml"}
        return {name: str(self.home / place) for name, place in names.items()}

    def edit(self, config: str, **changes: Any) -> None:
        """Replace keys of a composed file, sections by dotted names with `__`."""
        file = self.folder / "config" / f"{config}.yaml"
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
        for path, value in changes.items():
            *sections, key = path.split("__")
            place = document
            for section in sections:
                place = place[section]
            place[key] = value
        file.write_text(yaml.safe_dump(document), encoding="utf-8")

    def start(self, stage: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a stage in a process group of its own that Ctrl-C ends, as a terminal would.

        Whoever runs the tests in the background may have SIGINT ignored, and a child inherits that.
        """
        command = [sys.executable, "-m", f"stages.{stage}", *arguments]
        environment = {**os.environ, **self.variables}
        pipe = subprocess.PIPE
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)
        finally:
            signal.signal(signal.SIGINT, before)

    def run(self, stage: str, *arguments: str) -> tuple[int, str]:
        """Run a stage to its end: exit status, stderr."""
        with self.start(stage, *arguments) as process:
            _, text = process.communicate(timeout=120)
            return process.returncode, text


def write_study(
    home: Path, *modes: str, factorials: tuple[str, ...] = (), overrides: tuple[str, ...] = (), trace: str = "smoke"
) -> SmallStudy:
    """environment.json, config/ and trace/, as the first three stages write them on a CPU."""
    small = SmallStudy(home)
    home.mkdir(parents=True, exist_ok=True)
    choices = {"name": "small", "model": "tiny", "trace": trace, "measure": "smoke", "device": "cpu"}
    lists = {"modes": list(modes), "factorials": list(factorials), "overrides": list(overrides)}
    (home / "params.yaml").write_text(yaml.safe_dump({**choices, **lists}), encoding="utf-8")
    params: Params = read_params(home / "params.yaml")
    atomic.write_json(small.folder / "environment.json", describe("cpu"))
    for name, document in compose_study(params, "cpu", ROOT / "conf").items():
        atomic.write_text(small.folder / "config" / name, yaml.safe_dump(document))
    plan, requests = plan_of(small.folder / "config" / "eager.yaml")
    atomic.write_json(small.folder / "trace" / "plan.json", plan.model_dump(mode="json"))
    atomic.write_json(small.folder / "trace" / "requests.json", [request.model_dump(mode="json") for request in requests])
    return small


def wait_for(condition: Callable[[], Any], what: str, limit_s: float = 60) -> Any:
    """Poll until the condition gives something true, and return it."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        if found := condition():
            return found
        time.sleep(0.02)
    raise AssertionError(f"waited {limit_s} s for {what}")


def is_gone(pid: int) -> bool:
    """No such process, or one that only waits to be reaped."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def workers_of(parent: int, *, recursive: bool = False) -> list[int]:
    """Pids of the workers that a process has, or it and its children; one that ends meanwhile is none."""
    try:
        return [child.pid for child in psutil.Process(parent).children(recursive=recursive) if _is_worker(child)]
    except psutil.NoSuchProcess:
        return []


def worker_of(parent: int) -> int | None:
    """The worker's pid, once a command has one."""
    return next(iter(workers_of(parent)), None)


def _is_worker(process: psutil.Process) -> bool:
    try:
        return "stages.workers.child" in process.cmdline()
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return False
