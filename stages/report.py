"""Stage `report`: every record and the attribution as one document, and the views that are drawn from it alone.

Mechanism: `study_document` joins what was measured; the views read that document and nothing else, so that drawing a
kept study again gives the same bytes.

Reads   environment.json, config/, trace/plan.json, all records of the modes in params.yaml, attribution.json
Writes  study.json, report.md, report.html, metrics.json, figures/, series/
Example python -m stages.report
        python -m stages.report --print            the verdict of the last report
        python -m stages.report --redraw FOLDER    the views of a kept study, from its study.json
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from stages.analysis.reading import StudyRecords, read_attribution, read_study
from stages.analysis.study import study_document
from stages.core import atomic, paths
from stages.core.closed_output import run_printing_command
from stages.core.composed import read_settings
from stages.core.currency import check_current, factorial_hashes, mode_hashes
from stages.core.errors import UserError
from stages.core.settings import read_params
from stages.core.typed_yaml import load_yaml
from stages.views import console
from stages.views.document import load
from stages.views.study_files import write_views


def main() -> None:
    """Report, redraw or print. Raises UserError for a missing or broken record."""
    parser = argparse.ArgumentParser(prog="python -m stages.report", description="Write the report of the latest study.")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--redraw", type=Path, metavar="FOLDER", help="draw the views again from FOLDER/study.json only")
    choice.add_argument("--print", action="store_true", dest="show", help="print the verdict of the last report")
    given = parser.parse_args()
    if given.show:
        sys.stdout.write(shown(paths.latest()))
    elif given.redraw:
        write_views(load(given.redraw / "study.json"), given.redraw)
    else:
        write_report(paths.latest())


def write_report(folder: Path) -> None:
    """Write study.json of a study folder, then draw from the file as written."""
    records = read_study(folder, read_params())
    check_all_current(folder, records)
    attribution = read_attribution(folder)
    if attribution.data is None:
        raise UserError(
            f"{folder}/attribution.json:status", "must be `ok`", attribution.status, f"{attribution.reason} Run dvc repro attribution."
        )
    atomic.write_json(folder / "study.json", study_document(records, attribution.data))
    write_views(load(folder / "study.json"), folder)


def check_all_current(folder: Path, records: StudyRecords) -> None:
    """Raise UserError for the first record that the present configuration, environment or code did not give."""
    for mode in records.modes:
        settings = read_settings(folder / "config" / f"{mode}.yaml")
        for record in records.of_mode(mode):
            check_current(record, mode_hashes(record.stage, settings, records.plan, records.environment))
    for name, record in records.steady_state.items():
        document = load_yaml(folder / "config" / "factorial" / f"{name}.yaml")
        check_current(record, factorial_hashes(document, records.plan, records.environment))


def shown(folder: Path) -> str:
    """The verdict as text as wide as the terminal (118 columns at least), then where the page lies."""
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    width = max(118, shutil.get_terminal_size((120, 24)).columns)
    page = os.path.relpath(folder / "report.html", paths.root())
    return f"{console.render(load(folder / 'study.json'), width, colour)}Report: {page}\n"


if __name__ == "__main__":
    run_printing_command(main)
