"""False alarms: the correctness stage again and again, on other prompts, tokens and adapters each time, in a fresh worker each.

    python benchmarks/false_alarms.py [--study reports/latest] [--modes eager compile] [--repeats 20] [--out FOLDER]

Reads a composed study (config/, environment.json, trace/plan.json) and writes nothing into it. Prints a line a repeat, and the
number of probes executed and of alarms. With `--out` a mode's counts go to FOLDER/false_alarms/<mode>.json after each repeat,
and those of all modes that lie there to FOLDER/false_alarms.md: several GPUs may each take some of the modes. A mode that cannot
run here leaves the file of an earlier run alone.
Status 1 with any alarm, any broken worker, or when no probe was executed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from stages.core import atomic, paths
from stages.core.composed import Settings
from stages.core.errors import UserError, run_command
from stages.core.partial import Partial
from stages.core.records.base import read_json
from stages.core.records.correctness import Answers, Check
from stages.core.timestamps import now
from stages.correctness import measure
from stages.workers.measurement import Study, unavailable
from stages.workers.process import WorkerFailed


@dataclass
class Repeats:
    """Of one mode, or of all. `counts`: `repeats`, `probes` executed, `checks` made, `alarms` (failed checks), `broken` workers."""

    unavailable: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    executed: Counter[str] = field(default_factory=Counter)
    alarms: list[dict[str, Any]] = field(default_factory=list)
    broken: list[dict[str, Any]] = field(default_factory=list)

    def add(self, draw: int, found: Answers) -> list[Check]:
        """Count one repeat; its failed checks."""
        failed = [check for check in found.checks if check.verdict == "fail"]
        self.counts.update(repeats=1, probes=found.num_probes_run, checks=num_checks(found), alarms=len(failed))
        self.executed.update(run.name for run in found.probes if run.num_checks)
        self.alarms += [{"draw": draw, **check.model_dump()} for check in failed]
        return failed


def repeated(study: Study, settings: Settings, repeats: int, keep: Callable[[Repeats], None] = lambda _: None) -> Repeats:
    """The stage on one mode, a draw a repeat; `keep` gets what there is after each."""
    mode = settings.mode["name"]
    seen = Repeats(unavailable=unavailable(settings))
    if seen.unavailable:
        sys.stdout.write(f"{mode}: unavailable: {seen.unavailable}\n")
        return seen
    for draw in range(1, repeats + 1):
        began_s = time.monotonic()
        try:
            found = measure(study, replace(settings, seed=draw), Partial(f"false-alarms-{mode}-{draw}"))
        except WorkerFailed as error:
            seen.counts.update(repeats=1, broken=1)
            seen.broken.append({"draw": draw, "reason": error.reason})
            sys.stdout.write(f"{mode} {draw}: BROKEN: {error.reason}\n")
            keep(seen)
            continue
        failed = seen.add(draw, found)
        sys.stdout.write(f"{mode} {draw}: {found.verdict}, {len(failed)} alarms, {time.monotonic() - began_s:.0f} s\n")
        for check in failed:
            sys.stdout.write(f"  ALARM {described_check(check)}\n")
        sys.stdout.flush()
        keep(seen)
    return seen


def num_checks(found: Answers) -> int:
    """Checks that ran."""
    return sum(check.verdict != "not_run" for check in found.checks)


def described_check(check: Check) -> str:
    """One failed check in words."""
    return f"{check.probe}: {check.name} on {check.subject}: {check.value} against {check.limit}; {check.reason}"


def described(counts: Counter[str]) -> str:
    """The counts in words."""
    names = ("repeats", "probes executed", "checks", "alarms", "broken workers")
    keys = ("repeats", "probes", "checks", "alarms", "broken")
    return ", ".join(f"{counts[key]} {name}" for key, name in zip(keys, names, strict=True))


def document(study: Study, settings: Settings, seen: Repeats) -> dict[str, Any]:
    """What is kept of one mode: where it ran, the counts, the repeats in which each probe was executed, each alarm."""
    machine = study.environment
    return {
        "mode": settings.mode["name"],
        "model": settings.model["name"],
        "precision": settings.precision,
        "on": machine["gpu"] or machine["cpu"],
        "torch": machine["torch"],
        "ended_at": now(),
        "unavailable": seen.unavailable,
        "counts": {key: seen.counts[key] for key in ("repeats", "probes", "checks", "alarms", "broken")},
        "executed": dict(seen.executed),
        "alarms": seen.alarms,
        "broken": seen.broken,
    }


def table(documents: list[dict[str, Any]]) -> str:
    """A row a mode, then in how many repeats each probe was executed."""
    head = "| mode | model | precision | repeats | probes executed | checks | alarms | broken workers | on | torch |"
    lines = ["# False alarms", "", head, "|---|---|---|---:|---:|---:|---:|---:|---|---|"]
    for one in documents:
        counts = " | ".join(str(one["counts"][key]) for key in ("repeats", "probes", "checks", "alarms", "broken"))
        lines.append(f"| {one['mode']} | {one['model']} | {one['precision']} | {counts} | {one['on']} | {one['torch']} |")
    probes = list(dict.fromkeys(name for one in documents for name in one["executed"]))
    lines += ["", f"| probe executed in | {' | '.join(one['mode'] for one in documents)} |", "|---|" + "---:|" * len(documents)]
    lines += [f"| {name} | {' | '.join(str(one['executed'].get(name, 0)) for one in documents)} |" for name in probes]
    for one in documents:
        lines += [f"\n{one['mode']}: unavailable: {one['unavailable']}"] if one["unavailable"] else []
        lines += [f"\n{one['mode']} {bad['draw']}: {bad.get('reason', '')} {bad.get('name', '')}" for bad in one["alarms"] + one["broken"]]
    return "\n".join(lines) + "\n"


def write(folder: Path, found: dict[str, Any]) -> None:
    """One mode's file, and the table of all that lie there."""
    atomic.write_json(folder / "false_alarms" / f"{found['mode']}.json", found)
    atomic.write_text(folder / "false_alarms.md", table(kept(folder)))


def kept(folder: Path) -> list[dict[str, Any]]:
    """What earlier runs left there. Raises UserError for a file that holds something else."""
    files = sorted((folder / "false_alarms").glob("*.json"))
    found = [read_json(file) for file in files]
    for file, one in zip(files, found, strict=True):
        if not (isinstance(one, dict) and one.keys() >= {"mode", "counts", "executed", "alarms", "broken"}):
            raise UserError(str(file), "must be the counts of one mode", one, "Move it away.")
    return found


def checked(chosen: Any) -> tuple[Study, dict[str, Settings]]:
    """The study and the modes to repeat, before anything is measured. Raises UserError."""
    composed = sorted(file.stem for file in (chosen.study / "config").glob("*.yaml"))
    if not composed:
        raise UserError("--study", "must be the folder of a composed study", str(chosen.study), "Run python -m stages.compose.")
    if chosen.repeats < 1:
        raise UserError("--repeats", "must be 1 or more", chosen.repeats, "Give how often each mode is checked.")
    study, here = Study(chosen.study), version("torch").partition("+")[0]
    if study.environment["torch"].partition("+")[0] != here:
        raise UserError("--study", f"must be composed for torch {here}, which runs here", study.environment["torch"], "Compose it here.")
    if chosen.out:
        kept(chosen.out)
        atomic.check_writable(chosen.out / "false_alarms.md")
    return study, {mode: study.settings(mode) for mode in chosen.modes or composed}


def main() -> int:
    """Repeat, print the counts, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", type=Path, default=paths.latest(), help="folder of a composed study")
    parser.add_argument("--modes", nargs="+", help="modes (all that were composed)")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", type=Path, help="folder for the counts (none: only printed)")
    chosen: Any = parser.parse_args()
    study, modes = checked(chosen)
    total: Counter[str] = Counter()
    for mode, settings in modes.items():

        def keep(seen: Repeats, settings: Settings = settings) -> None:
            if chosen.out:
                write(chosen.out, document(study, settings, seen))

        seen = repeated(study, settings, chosen.repeats, keep)
        if seen.unavailable and not (chosen.out and (chosen.out / "false_alarms" / f"{mode}.json").exists()):
            keep(seen)
        total.update(seen.counts)
        sys.stdout.write(f"{mode}: {described(seen.counts)}\n")
    sys.stdout.write(f"all: {described(total)}\n")
    return int(bool(total["alarms"] or total["broken"] or not total["probes"]))


if __name__ == "__main__":
    run_command(main)
