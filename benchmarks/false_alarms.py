"""False alarms: the correctness stage again and again, on other prompts, tokens and adapters each time, in a fresh worker each.

    python benchmarks/false_alarms.py [--study reports/latest] [--modes eager compile] [--repeats 20]

Reads a composed study (config/, environment.json, trace/plan.json) and writes nothing into it. Prints a line a repeat, and the
number of probes executed and of alarms. Status 1 with any alarm.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from stages.core import paths
from stages.core.errors import UserError, run_command
from stages.core.partial import Partial
from stages.core.records.correctness import Answers
from stages.correctness import measure
from stages.workers.measurement import Study, unavailable
from stages.workers.process import WorkerFailed


def repeated(study: Study, mode: str, repeats: int) -> Counter[str]:
    """Counts over the repeats of one mode: `repeats`, `probes` executed, `checks` made, `alarms` (failed checks), `broken` workers."""
    counts: Counter[str] = Counter()
    settings = study.settings(mode)
    if reason := unavailable(settings):
        sys.stdout.write(f"{mode}: unavailable: {reason}\n")
        return counts
    for draw in range(1, repeats + 1):
        began_s = time.monotonic()
        try:
            found = measure(study, replace(settings, seed=draw), Partial(f"false-alarms-{mode}-{draw}"))
        except WorkerFailed as error:
            counts.update(repeats=1, broken=1)
            sys.stdout.write(f"{mode} {draw}: BROKEN: {error.reason}\n")
            continue
        failed = [check for check in found.checks if check.verdict == "fail"]
        counts.update(repeats=1, probes=found.num_probes_run, checks=num_checks(found), alarms=len(failed))
        sys.stdout.write(f"{mode} {draw}: {found.verdict}, {len(failed)} alarms, {time.monotonic() - began_s:.0f} s\n")
        for check in failed:
            sys.stdout.write(
                f"  ALARM {check.probe}: {check.name} on {check.subject}: {check.value} against {check.limit}; {check.reason}\n"
            )
        sys.stdout.flush()
    return counts


def num_checks(found: Answers) -> int:
    """Checks that ran."""
    return sum(check.verdict != "not_run" for check in found.checks)


def main() -> int:
    """Repeat, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", type=Path, default=paths.latest(), help="folder of a composed study")
    parser.add_argument("--modes", nargs="+", help="modes (all that were composed)")
    parser.add_argument("--repeats", type=int, default=20)
    chosen: Any = parser.parse_args()
    composed = sorted(file.stem for file in (chosen.study / "config").glob("*.yaml"))
    if not composed:
        raise UserError("--study", "must be the folder of a composed study", str(chosen.study), "Run python -m stages.compose.")
    study = Study(chosen.study)
    total: Counter[str] = Counter()
    for mode in chosen.modes or composed:
        counts = repeated(study, mode, chosen.repeats)
        total += counts
        sys.stdout.write(f"{mode}: {described(counts)}\n")
    sys.stdout.write(f"all: {described(total)}\n")
    return int(bool(total["alarms"] or total["broken"]))


def described(counts: Counter[str]) -> str:
    """The counts in words."""
    names = ("repeats", "probes executed", "checks", "alarms", "broken workers")
    keys = ("repeats", "probes", "checks", "alarms", "broken")
    return ", ".join(f"{counts[key]} {name}" for key, name in zip(keys, names, strict=True))


if __name__ == "__main__":
    run_command(main)
