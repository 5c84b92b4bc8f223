"""publish: puts a study into MLflow. The last stage, and the only one that talks to a tracking server.

It reads study.json, the report and the records of one study folder, and makes one parent run and a child for each mode.
A run is found again by a hash of its content, so publishing twice changes nothing, and a publish that was killed half-way
is completed by the next. Its out, mlflow.json, holds those hashes and never a run id.

    python -m stages.publish                      reports/latest
    python -m stages.publish --study h200_llama   reports/studies/h200_llama (needs no DVC)
    python -m stages.publish --all                reports/latest and every kept study
    python -m stages.publish --sweep build/sweeps/2026-11-29_10-00-00
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from stages.core import kept_studies, paths
from stages.core.closed_output import run_printing_command
from stages.tracking.publishing import publish_study, publish_sweep


def main() -> None:
    """Parse the command line and publish."""
    parser = argparse.ArgumentParser(prog="python -m stages.publish", description="Publish a study or a sweep to MLflow.")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--study", metavar="NAME", help="a kept study, instead of reports/latest")
    which.add_argument("--sweep", metavar="FOLDER", type=Path, help="the folder of a finished sweep")
    which.add_argument("--all", action="store_true", help="reports/latest and every kept study")
    given = parser.parse_args()
    if given.sweep:
        sys.stdout.write(f"{publish_sweep(given.sweep.resolve())}\n")
        return
    for folder in _folders(given.study, given.all):
        sys.stdout.write(f"{publish_study(folder)}\n")


def _folders(study: str | None, publish_all: bool) -> list[Path]:
    if study is not None:
        return [kept_studies.folder(study)]
    return [paths.latest(), *map(kept_studies.folder, kept_studies.names() if publish_all else [])]


if __name__ == "__main__":
    run_printing_command(main)
