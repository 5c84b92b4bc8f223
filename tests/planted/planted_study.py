"""A project of its own with the planted files in it: what a user does who adds a model or a mode."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stages.core.records.base import read
from stages.core.records.path import CaptureRecord
from tests.workers.small_study import ROOT, SmallStudy

HERE = Path(__file__).resolve().parent


def copy_project(home: Path) -> Path:
    """stages/ with the planted modules where configuration can name them."""
    shutil.copytree(ROOT / "stages", home / "stages", ignore=shutil.ignore_patterns("__pycache__", "weights"))
    shutil.copy(HERE / "planted_models.py", home / "stages" / "models" / "planted.py")
    shutil.copy(HERE / "planted_modes.py", home / "stages" / "modes" / "planted.py")
    return home


@dataclass
class PlantedStudy(SmallStudy):
    """A small study whose commands run in that project."""

    project: Path = field(default=ROOT, kw_only=True)

    def start(self, stage: str, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", f"stages.{stage}", *arguments]
        environment = {**os.environ, **self.variables}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.project, env=environment, stdout=pipe, stderr=pipe, text=True, start_new_session=True)

    def captured(self, mode: str) -> CaptureRecord:
        """Run the public command; its record."""
        status, text = self.run("capture", "--mode", mode)
        assert status == 0, text
        return read(self.folder / "capture" / f"{mode}.json", CaptureRecord)

    def plant(self, mode: str, **changes: Any) -> None:
        """Edit the composed configuration: `model_kind`, or keys of `edit`."""
        if kind := changes.pop("model_kind", None):
            changes |= {"model___target_": "stages.models.planted.Planted", "model__kind": kind}
        if planted := changes.pop("mode_class", None):
            changes["mode___target_"] = f"stages.modes.planted.{planted}"
        self.edit(mode, **changes)
