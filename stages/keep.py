"""keep: sets reports/latest aside under a name, with the params.yaml and dvc.lock it came from.

    python -m stages.keep h200_llama      -> reports/studies/h200_llama/

The copy is complete or absent (it is made beside its place and renamed), never replaces another, and is refused when
params.yaml was edited since: a kept study must say what it came from.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from stages.core import kept_studies, paths
from stages.core.closed_output import run_printing_command
from stages.core.errors import UserError
from stages.core.settings import params_file, read_params
from stages.core.stage_names import MEASURING_STAGES
from stages.views import document
from stages.views.choices import check_same_choices, is_record_of


def keep(name: str) -> Path:
    """Copy latest/ without records of an earlier study, params.yaml and dvc.lock to the kept study `name`; returns its folder.

    Raises UserError.
    """
    target = paths.study(kept_studies.checked_name(name))
    if target.exists():
        raise UserError("name", "must not be taken", name, f"Choose another, or remove {target} first.")
    study = document.load(paths.latest() / "study.json")
    check_same_choices(study, read_params())
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".keep-") as beside:
        copy = Path(beside) / name
        shutil.copytree(paths.latest(), copy, ignore=shutil.ignore_patterns(".*"))
        for record in (file for stage in MEASURING_STAGES for file in (copy / stage).glob("*.json")):
            if not is_record_of(study, record.parent.name, record.stem):
                record.unlink()
        for name_there, file in _came_from().items():
            if file.is_file():
                shutil.copy2(file, copy / name_there)
        copy.rename(target)
    return target


def _came_from() -> dict[str, Path]:
    """params.yaml, whatever OPMODE_PARAMS calls it, and dvc.lock, which speaks of reports/latest alone: of no study elsewhere."""
    of_dvc = paths.latest() == paths.root() / "reports" / "latest"
    return {"params.yaml": params_file()} | ({"dvc.lock": paths.root() / "dvc.lock"} if of_dvc else {})


def main() -> None:
    """Parse the command line and keep."""
    parser = argparse.ArgumentParser(prog="python -m stages.keep", description="Keep reports/latest under a name.")
    parser.add_argument("name", help="folder under reports/studies")
    target = keep(parser.parse_args().name)
    without = "" if (target / "dvc.lock").is_file() else " (there is no dvc.lock: this study was not made by dvc repro)"
    sys.stdout.write(f"kept in {target}{without}\n")


if __name__ == "__main__":
    run_printing_command(main)
