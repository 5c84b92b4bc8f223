"""gate: whether the latest study is good enough to go on. The last command of `make repro`.

    python -m stages.gate

Exit status 1 when a mode of params.yaml failed, was refuted, gives wrong answers or was never measured, or when
`gate.baseline` names a kept study and something became worse since: a new fallback fails whatever the averages say.
Wins since the baseline are printed and do not fail. Exit status 2 when the two cannot be compared. A mode that this
device cannot run is no failure. In a service's own CI the same gate runs in pytest: `stages/pytest_plugin.py`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator

from stages.analysis.comparison import Difference, compare, new_fallbacks, wins
from stages.core import kept_studies, paths
from stages.core.closed_output import run_printing_command
from stages.core.settings import read_params
from stages.views import document
from stages.views.choices import check_same_choices

_FAILING = ("failed", "skipped", "refuted", "wrong")


def broken_modes(study: document.Study, modes: Iterable[str]) -> Iterator[str]:
    """Each mode that failed, was refuted, gives wrong answers or was never measured, one line each."""
    for mode in modes:
        if mode not in study["modes"]:
            yield f"{mode}: not in the study; run dvc repro"
        elif document.label(study, mode) in _FAILING:
            yield f"{mode}: {document.why_not(study, mode)}"


def since(baseline: str | None, study: document.Study) -> list[Difference]:
    """What differs since a kept study; nothing without one. Raises UserError when the two cannot be compared."""
    return compare(document.load(kept_studies.study_file(baseline)), study) if baseline else []


def regressions(baseline: str | None, differences: list[Difference]) -> Iterator[str]:
    """New fallbacks first, then whatever else became worse, one line each."""
    yield from (f"new fallback since {baseline}: {line}" for line in new_fallbacks(differences))
    for row in differences:
        if row.judgement == "worse" and row.section != "fallbacks":
            yield f"{row.mode or 'release'}: {row.subject} became worse since {baseline}: {row.before} -> {row.after}"


def main() -> int:
    """Print each failure and each win, or one line that says all is well."""
    argparse.ArgumentParser(prog="python -m stages.gate", description="Fail when the latest study is not good enough.").parse_args()
    study, params = document.load(paths.latest() / "study.json"), read_params()
    check_same_choices(study, params, modes=False)  # a mode that is missing fails by name
    differences = since(params.gate.baseline, study)
    found = [*broken_modes(study, params.modes), *regressions(params.gate.baseline, differences)]
    lines = [*found, *(f"better since {params.gate.baseline}: {line}" for line in wins(differences))]
    lines += [] if found else [f"{len(study['modes'])} modes, nothing failed"]
    sys.stdout.write("".join(f"gate: {line}\n" for line in lines))
    return int(bool(found))


if __name__ == "__main__":
    run_printing_command(main)
