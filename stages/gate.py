"""gate: whether the latest study is good enough to go on. The last command of `make repro`.

    python -m stages.gate

Exit status 1 when a mode of params.yaml failed, was refuted, gives wrong answers or was never measured, or when
`gate.baseline` names a kept study and something became worse since. A mode that this device cannot run is no failure.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from stages.analysis.comparison import compare
from stages.core import kept_studies, paths
from stages.core.errors import run_command
from stages.core.settings import Params, read_params
from stages.views import document

_FAILING = ("failed", "skipped", "refuted", "wrong")


def failures(study: document.Study, params: Params) -> Iterator[str]:
    """Each reason not to go on, one line each."""
    for mode in params.modes:
        if mode not in study["modes"]:
            yield f"{mode}: not in the study; run dvc repro"
        elif document.label(study, mode) in _FAILING:
            yield f"{mode}: {document.why_not(study, mode)}"
    if params.gate.baseline:
        before = document.load(kept_studies.study_file(params.gate.baseline))
        for row in compare(before, study):
            if row.judgement == "worse":
                yield f"{row.mode}: {row.subject} became worse since {params.gate.baseline}: {row.before} -> {row.after}"


def main() -> int:
    """Print each failure, or one line that says all is well."""
    argparse.ArgumentParser(prog="python -m stages.gate", description="Fail when the latest study is not good enough.").parse_args()
    study = document.load(paths.latest() / "study.json")
    found = list(failures(study, read_params()))
    sys.stdout.write("".join(f"gate: {line}\n" for line in found) or f"gate: {len(study['modes'])} modes, nothing failed\n")
    return int(bool(found))


if __name__ == "__main__":
    run_command(main)
