"""One cell of a sweep: the stage commands, one process each, on a study folder of the cell's own.

Nothing here raises for what a cell does: Hydra stops a sweep at the first job that raises, so a cell that breaks is a
record (cell.json) like any other, and the next cell runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from omegaconf import OmegaConf

from stages.core import atomic, paths
from stages.core.errors import UserError
from stages.core.records.base import write
from stages.core.settings import Params, params_file, read_params
from stages.core.stage_names import MODE_STAGES
from stages.core.timestamps import now
from stages.core.typed_yaml import load_yaml
from stages.sweeps.choices import Choice, cell_params, read_factorials
from stages.sweeps.results import CELL_FILE, LOG_FILE, STUDY_FOLDER, CellResult

_PACKAGE_PARENT = Path(__file__).resolve().parents[2]
_NUM_TAIL_LINES = 20


def run_cell(folder: Path, choices: Sequence[Choice]) -> CellResult:
    """Run one cell in `folder` (params.yaml, log.txt, study/) and write its cell.json; returns what became of it."""
    cell = _Cell(folder, choices)
    try:
        params = cell.write_params()
    except UserError as error:
        return cell.ended("params", 2, [str(error)])
    for command in stage_commands(params):
        exit_status = cell.run(command)
        if exit_status != 0:
            return cell.ended(" ".join(command), exit_status, cell.log_tail())
    return cell.ended("", 0, [])


def stage_commands(params: Params) -> Iterator[list[str]]:
    """The stages of a study in their order: name and arguments of each command."""
    yield from (["environment"], ["compose"], ["trace"])
    for mode in params.modes:
        yield from ([stage, "--mode", mode] for stage in MODE_STAGES)
    yield from (["steady_state", "--factorial", name] for name in params.factorials)
    yield from (["attribution"], ["report"])


class _Cell:
    def __init__(self, folder: Path, choices: Sequence[Choice]) -> None:
        self.folder, self.choices = folder, choices
        self.seconds: dict[str, float] = {}
        self.started_at = now("milliseconds")
        folder.mkdir(parents=True, exist_ok=True)

    def write_params(self) -> Params:
        """params.yaml of the cell, checked."""
        name = f"sweep_{self.folder.parent.name}_{self.folder.name}"
        factorials = read_factorials(paths.root() / "conf" / "factorial")
        params = cell_params(load_yaml(params_file()), name, self.choices, factorials)
        file = self.folder / "params.yaml"
        atomic.write_text(file, OmegaConf.to_yaml(OmegaConf.create(params)))
        return read_params(file)

    def run(self, command: Sequence[str]) -> int:
        """Run one stage command to its end; its output goes to log.txt."""
        environment = os.environ | {
            "OPMODE_STUDY": str(self.folder / STUDY_FOLDER),
            "OPMODE_PARAMS": str(self.folder / "params.yaml"),
            "OPMODE_ROOT": str(paths.root()),
        }
        start = time.monotonic()
        with (self.folder / LOG_FILE).open("a", encoding="utf-8") as log:
            log.write(f"$ python -m stages.{' '.join(command)}\n")
            log.flush()
            arguments = [sys.executable, "-m", f"stages.{command[0]}", *command[1:]]
            ended = subprocess.run(
                arguments, cwd=_PACKAGE_PARENT, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL, check=False
            )
        self.seconds[" ".join(command)] = round(time.monotonic() - start, 3)
        return ended.returncode

    def log_tail(self) -> list[str]:
        """The last lines that the cell's commands wrote."""
        text = (self.folder / LOG_FILE).read_text(encoding="utf-8", errors="replace")
        return text.splitlines()[-_NUM_TAIL_LINES:]

    def ended(self, stage: str, exit_status: int, log_tail: list[str]) -> CellResult:
        """Write cell.json: failed when a stage is named."""
        texts = {choice.key: choice.text for choice in self.choices}
        result = CellResult(
            cell=self.folder.name,
            choices=texts,
            mode=texts.get("mode", ""),
            status="failed" if stage else "ok",
            stage=stage,
            exit_status=exit_status,
            log_tail=log_tail,
            seconds=self.seconds,
            started_at=self.started_at,
            ended_at=now("milliseconds"),
        )
        write(self.folder / CELL_FILE, result)
        return result
