"""bundle: what a bug report of a mode needs, in one folder: a script that shows the fault, and everything around it.

For a mode that failed, was refuted, answered wrong or is slower than the baseline. Reads the study in reports/latest; writes
build/bundles/<mode>/: reproduce.py (run it anywhere with requirements.txt installed), code/, environment.json, expected.json
(expected against seen), and from a run of the script in a fresh process: seen.txt (its output), trace/ (torch's structured
trace, for tlparse) and profile.json (a Chrome trace).

    python -m stages.bundle --mode cudagraph_trees
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stages.analysis.reading import read_study
from stages.bundles import code
from stages.bundles.faults import Fault, fault_of
from stages.bundles.script import script
from stages.core import atomic, paths
from stages.core.build import build
from stages.core.closed_output import run_printing_command
from stages.core.composed import Settings, read_settings
from stages.core.errors import UserError
from stages.core.records.base import read_json
from stages.core.settings import read_params

LIMIT_S = 900
SCRIPT = "reproduce.py"


def write(folder: Path, study: Path, settings: Settings, fault: Fault) -> list[str]:
    """Write all that needs no run; the names of files that were too large to go along."""
    shutil.rmtree(folder, ignore_errors=True)
    nodes = [settings.model, settings.mode, settings.baseline, settings.trace]
    modules = code.modules_for(fault.kind, nodes)
    code.copy_modules(modules, folder / "code")
    left_out = code.copy_files(build(settings.model, "model").files(), folder / "code")
    plan = dict(read_json(study / "trace" / "plan.json")) | {"runs": []}
    requests = list(read_json(study / "trace" / "requests.json"))[: fault.num_steps + 1]  # a step admits one at most
    title = f"Mode {settings.mode['name']}: {fault.kind}."
    atomic.write_text(folder / SCRIPT, script(title, fault, asdict(settings), plan, requests))
    atomic.write_text(folder / "requirements.txt", "".join(f"{line}\n" for line in code.requirements(modules)))
    atomic.write_json(folder / "environment.json", read_json(study / "environment.json"))
    atomic.write_json(folder / "expected.json", {"mode": settings.mode, **asdict(fault), "left_out": left_out})
    return left_out


def run(folder: Path, kind: str) -> int:
    """Run the script in a fresh process, with torch's structured trace; then once more under torch's profiler. Its exit status."""
    environment = {**os.environ, "TORCH_TRACE": str(folder / "trace")}
    done = _python(folder, environment)
    atomic.write_text(folder / "seen.txt", done.stdout + done.stderr)
    if kind != "failed":
        _python(folder, dict(os.environ), "--profile", "profile.json")
    return done.returncode


def _python(folder: Path, environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    ours = ("OPMODE_", "PYTHONPATH", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
    clean = {name: value for name, value in environment.items() if not name.startswith(ours)} | packages_elsewhere(environment)
    command = [sys.executable, SCRIPT, *arguments]
    return subprocess.run(command, cwd=folder, env=clean, capture_output=True, text=True, check=False, timeout=LIMIT_S)


def packages_elsewhere(environment: Mapping[str, str]) -> dict[str, str]:
    """PYTHONPATH without folders that hold this project: some machines name their packages there. Empty where none is left."""
    folders = [Path(one).absolute() for one in environment.get("PYTHONPATH", "").split(os.pathsep) if one]
    kept = [str(folder) for folder in folders if not (folder / "stages").is_dir()]
    return {"PYTHONPATH": os.pathsep.join(kept)} if kept else {}


def chosen(mode: str) -> tuple[Path, Settings, Fault]:
    """The study, the mode's settings and its fault. Raises UserError for an unknown mode, or one without a fault."""
    study = paths.latest()
    params = read_params()
    if mode not in params.modes:
        raise UserError("--mode", "must be one that params.yaml names", mode, f"Known: {', '.join(params.modes)}.")
    fault = fault_of(read_study(study, params), mode)
    if fault is None:
        rule = "must have failed, been refuted, answered wrong or been slower than the baseline"
        raise UserError("--mode", rule, f"{mode}, of which the records say nothing of the kind", "There is nothing to reproduce.")
    return study, read_settings(study / "config" / f"{mode}.yaml"), fault


def main() -> None:
    """Write the bundle, run it once, say where it lies and whether it shows the fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", required=True)
    mode = parser.parse_args().mode
    study, settings, fault = chosen(mode)
    folder = paths.build() / "bundles" / mode
    left_out = write(folder, study, settings, fault)
    sys.stdout.write("\n".join(lines(folder, fault, run(folder, fault.kind), left_out)) + "\n")


def lines(folder: Path, fault: Fault, status: int, left_out: list[str]) -> list[str]:
    """What the command prints."""
    words = {1: "shows the fault in a fresh process", 0: "does not show the fault in a fresh process"}
    said: list[Any] = [f"{fault.kind}: {fault.seen[0]}", f"{folder / SCRIPT}: {words.get(status, f'ended with status {status}')}"]
    return [*said, *(f"not copied, above 64 MiB or outside the project: {name}" for name in left_out)]


if __name__ == "__main__":
    run_printing_command(main)
