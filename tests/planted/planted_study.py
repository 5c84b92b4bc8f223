"""A project of its own with the planted files in it: what a user does who adds a model or a mode."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from stages.core.records.base import Record, read
from stages.core.records.correctness import CorrectnessRecord
from stages.core.records.path import CaptureRecord
from stages.core.records.steps import SteadyStateRecord
from tests.workers.small_study import ROOT, SmallStudy

HERE = Path(__file__).resolve().parent
RecordType = TypeVar("RecordType", bound=Record[Any])


def copy_project(home: Path) -> Path:
    """stages/ with the planted modules where configuration can name them."""
    shutil.copytree(ROOT / "stages", home / "stages", ignore=shutil.ignore_patterns("__pycache__", "weights"))
    shutil.copy(HERE / "planted_models.py", home / "stages" / "models" / "planted.py")
    shutil.copy(HERE / "planted_modes.py", home / "stages" / "modes" / "planted.py")
    return home


@dataclass
class PlantedStudy(SmallStudy):
    """A small study whose commands run in that project; `tell` gets the verdict and the reason of each record."""

    project: Path = field(default=ROOT, kw_only=True)
    tell: Callable[[str, Any], None] = field(default=lambda *_: None, kw_only=True)

    @property
    def variables(self) -> dict[str, str]:
        """Compile caches are the project's, so that equal kernels are compiled once; the lock of the GPU is the study's own.

        Nothing here depends on times, so several studies may share a device (`pytest -n`).
        """
        temporary = self.home / "tmp"
        temporary.mkdir(exist_ok=True)
        return {**super().variables, "OPMODE_BUILD": str(self.project / "build"), "TMPDIR": str(temporary)}

    def run(self, stage: str, *arguments: str) -> tuple[int, str]:
        """Run a stage to its end, which may take long where many run at once: exit status, stderr."""
        with self.start(stage, *arguments) as process:
            _, text = process.communicate(timeout=600)
            return process.returncode, text

    def start(self, stage: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", f"stages.{stage}", *arguments]
        environment = {**os.environ, **self.variables}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.project, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)

    def captured(self, mode: str) -> CaptureRecord:
        """Run the public command; its record."""
        record = self._measured("capture", CaptureRecord, "mode", mode)
        found = record.data.evidence if record.data else None
        self._say(found.verdict if found else record.status, "; ".join(found.reasons) if found else record.reason)
        return record

    def checked(self, mode: str) -> CorrectnessRecord:
        """The same of the correctness stage."""
        record = self._measured("correctness", CorrectnessRecord, "mode", mode)
        failed = [f"{check.name} on {check.subject}" for check in record.data.checks if check.verdict == "fail"] if record.data else []
        self._say(record.data.verdict if record.data else record.status, "; ".join(failed[:3]) or record.reason)
        return record

    def timed(self, factorial: str) -> SteadyStateRecord:
        """The same of the steady state."""
        return self._measured("steady_state", SteadyStateRecord, "factorial", factorial)

    def _measured(self, stage: str, kind: type[RecordType], item: str, name: str) -> RecordType:
        status, text = self.run(stage, f"--{item}", name)
        assert status == 0, text
        return read(self.folder / stage / f"{name}.json", kind)

    def _say(self, verdict: str, reason: str) -> None:
        self.tell("verdict", verdict)
        self.tell("reason", reason)

    def plant(self, mode: str, **changes: Any) -> None:
        """Edit the composed configuration: `model_kind`, `mode_class`, or keys of `edit`."""
        if kind := changes.pop("model_kind", None):
            changes |= {"model___target_": "stages.models.planted.Planted", "model__kind": kind}
        if planted := changes.pop("mode_class", None):
            changes["mode___target_"] = f"stages.modes.planted.{planted}"
        self.edit(mode, **changes)

    def plant_cell(self, cell: str, **changes: Any) -> None:
        """Edit one cell of the composed factorial."""
        self.edit("factorial/inductor_manual", **{f"cells__{cell}__{key}": value for key, value in changes.items()})
