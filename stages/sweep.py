"""sweep: a study for every combination of choices, one folder each, all of them under one parent in MLflow.

A Hydra multirun over conf/sweep.yaml expands `key=a,b`; each job runs the stage commands, one process each, on
build/sweeps/<time>/<cell>/study with a params.yaml of its own. A cell that breaks is recorded (cell.json) and the others
go on; the exit status is then 1. Everything not given comes from params.yaml.

    python -m stages.sweep -m model=known_answer mode=eager,compile precision=fp32,bf16
"""

from __future__ import annotations

import os
import sys
from datetime import datetime
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from stages.core import paths
from stages.core.closed_output import print_rich, run_printing_command
from stages.core.errors import UserError
from stages.core.settings import BASELINE, Params, read_params
from stages.sweeps.choices import GROUPS, Choice, checked, key_of, swept_keys
from stages.sweeps.jobs import run_cell
from stages.sweeps.results import LOG_FILE, STUDY_FOLDER, read_cells
from stages.sweeps.table import is_failed, remarks, table
from stages.tracking.publishing import publish_sweep


@hydra.main(version_base="1.3", config_path=str(paths.root() / "conf"), config_name="sweep")
def job(config: DictConfig) -> None:
    """One cell, in the folder that Hydra gives it."""
    context = HydraConfig.get()
    swept = set(config.swept)
    given = [override for override in context.overrides.task if key_of(override) in swept]
    choices = [_choice(config, key_of(override), override.split("=", 1)[1]) for override in given]
    folder = Path(context.runtime.output_dir)
    _say(f"{folder.name}: {' '.join(given)}, log in {_shown(folder / LOG_FILE)}")
    result = run_cell(folder, choices)
    ending = f"failed in {result.stage}" if result.stage else f"done in {sum(result.seconds.values()):.0f} s"
    _say(f"{folder.name}: {ending}")


def main() -> int:
    """Run the sweep, print its table, publish it. Returns 1 when a cell failed."""
    arguments = checked(sys.argv[1:])
    swept = swept_keys(arguments)
    folder = _new_folder()
    sys.argv = [sys.argv[0], "-m", *_inserted(read_params(), swept), f"hydra.sweep.dir={folder}", *arguments]
    _expand(arguments)
    if not folder.exists():  # --help, --cfg and the like
        return 0
    return _closed(folder)


def _expand(arguments: list[str]) -> None:
    """Let Hydra run the cells. Raises UserError with what it says of the command line."""
    os.environ["HYDRA_FULL_ERROR"] = "1"  # else Hydra prints and exits by itself
    try:
        job()
    except (HydraException, OmegaConfBaseException) as error:
        said = str(error.__cause__ or error).split("Config search path")[0]
        raise UserError("sweep", said, " ".join(arguments), "Fix the command line.") from error


def _closed(folder: Path) -> int:
    cells = read_cells(folder)
    print_rich(table(folder, cells))
    for remark in remarks(folder, cells):
        _say(remark)
    _say(f"reports: {_shown(folder)}/<cell>/{STUDY_FOLDER}/report.html")
    _say(publish_sweep(folder))
    return int(any(is_failed(folder, cell) for cell in cells))


def _say(text: str) -> None:
    """One line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _shown(path: Path) -> str:
    """From where the command runs, when it lies below."""
    return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)


def _inserted(params: Params, swept: list[str]) -> list[str]:
    """Hydra's choices for what the caller left out; its argparse wants them after `-m`."""
    ours = {"model": params.model, "trace": params.trace, "measure": params.measure, "mode": BASELINE}
    return [*(f"{key}={value}" for key, value in ours.items() if key not in swept), f"swept=[{','.join(swept)}]"]


def _choice(config: DictConfig, key: str, text: str) -> Choice:
    if key in GROUPS:
        return Choice(key, text, text)
    value = OmegaConf.select(config, key)
    return Choice(key, text, OmegaConf.to_container(value) if OmegaConf.is_config(value) else value)


def _new_folder() -> Path:
    sweeps = paths.build() / "sweeps"
    name = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
    taken = len(list(sweeps.glob(f"{name}*")))
    return sweeps / (f"{name}_{taken}" if taken else name)


if __name__ == "__main__":
    run_printing_command(main)
