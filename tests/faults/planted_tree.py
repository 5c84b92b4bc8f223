"""A copy of the package with planted modes and models in it, measured through the public command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from stages.core import atomic
from stages.core.records import base
from stages.core.records.correctness import Answers, CorrectnessRecord
from stages.core.records.load import Load, LoadRecord
from stages.environment import describe
from tests.python_path import python_path
from tests.workers.small_study import ROOT, SmallStudy, write_study

RANK = 4
PADDED = ("model.max_batch=4", "model.capture_sizes=[1,4]")
PLACES = {"planted.py": "modes/planted.py", "planted_models.py": "models/faulty.py", "planted_captures.py": "modes/planted_captures.py"}


@dataclass
class PlantedTree:
    """A study whose largest batch has padding and whose model takes adapters, in a project of its own."""

    study: SmallStudy
    device: str = "cpu"
    composed: dict[str, str] = field(default_factory=dict)

    def checked(self, mode: str, model: dict[str, Any] | None = None, **keys: Any) -> Answers:
        """`python -m stages.correctness --mode <mode>`; the record's data. `mode`: a composed one, or a name for what `keys` say."""
        self.write(mode, model or {}, keys)
        done = self.run("correctness", mode)
        data = _measured(base.read(self.study.folder / "correctness" / f"{mode}.json", CorrectnessRecord))
        assert f"{data.num_probes_run} of {len(data.probes)} probes executed" in done.stdout
        return data

    def served(self, mode: str, **keys: Any) -> Load:
        """`python -m stages.load --mode <mode>` at a rate that fills batches; the record's data."""
        self.write(mode, {}, keys, arrival_rates=[2000.0])
        self.run("load", mode)
        return _measured(base.read(self.study.folder / "load" / f"{mode}.json", LoadRecord))

    def write(self, mode: str, model: dict[str, Any], keys: dict[str, Any], **others: Any) -> None:
        """The composed configuration of a mode (of eager, for a name of its own) with these edits, and no others."""
        document: dict[str, Any] = yaml.safe_load(self.composed.get(mode, self.composed["eager"]))
        document |= {"device": self.device, **others}
        document["model"] = {**document["model"], "adapter_rank": RANK, **model}
        document["mode"] = {**document["mode"], **keys}  # not in place: the baseline is the same YAML node
        (self.study.folder / "config" / f"{mode}.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")

    def run(self, stage: str, mode: str) -> subprocess.CompletedProcess[str]:
        """The public command in that project. Its lock of the device is its own: nothing here measures times."""
        home = str(self.study.home)
        variables = {**os.environ, **self.study.variables, "OPMODE_ROOT": home, "TMPDIR": home, **python_path(self.study.home)}
        command = [sys.executable, "-m", f"stages.{stage}", "--mode", mode]
        done = subprocess.run(command, cwd=home, env=variables, capture_output=True, text=True, timeout=250, check=False)
        if done.returncode:
            raise Broken(done.stderr)
        return done


class Broken(Exception):
    """Nothing was measured, so that nothing is known of what was planted."""


def _measured(record: base.Record[base.Data]) -> base.Data:
    if record.data is None:
        raise Broken(f"{record.status}: {record.reason} {record.log_tail}")
    return record.data


def planted_tree(home: Path, *modes: str, device: str = "cpu") -> PlantedTree:
    """Copy the package, put the planted files where configuration can name them, compose."""
    shutil.copytree(ROOT / "stages", home / "stages", ignore=shutil.ignore_patterns("__pycache__"))
    for name, place in PLACES.items():
        shutil.copy(Path(__file__).with_name(name), home / "stages" / place)
    study = write_study(home, "eager", *modes, overrides=PADDED)
    composed = {file.stem: file.read_text(encoding="utf-8") for file in (study.folder / "config").glob("*.yaml")}
    tree = PlantedTree(study, device, composed)
    if device != "cpu":
        atomic.write_json(tree.study.folder / "environment.json", describe(device))
    return tree


def fault(name: str, **keys: Any) -> dict[str, Any]:
    """The keys of a mode of `planted.py` with that fault."""
    return {"_target_": "stages.modes.planted.Planted", "name": name, "fault": name.partition("-")[0], **keys}


def failed(answers: Answers) -> set[str]:
    """The probes that raise."""
    return {check.probe for check in answers.checks if check.verdict == "fail"}


def why(answers: Answers) -> list[Any]:
    """What a test shows when it fails."""
    return [check for check in answers.checks if check.verdict == "fail"]
