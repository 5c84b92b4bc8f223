"""ranges: the first steps of the trace in one mode, each inside an NVTX range, for a profiler of yours.

    nsys profile --trace=cuda,nvtx --cuda-graph-trace=node --output=build/nsys/MODE python -m stages.ranges --mode MODE

A range is named `MODE PHASE step N size REAL padded SIZE`, so that what Nsight Systems shows can be held against what the path
ledger says, which this command prints: steps by path and shape. (torch's own profiler is off: two cannot listen at once.)
Reads config/<mode>.yaml, trace/; writes nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from stages.core import paths
from stages.core.closed_output import run_printing_command
from stages.core.errors import UserError
from stages.workers.measurement import Study, require_item, unavailable, worker
from stages.workers.process import WorkerFailed


def walked(study: Study, mode: str, num_steps: int) -> list[str]:
    """Walk the steps; a line a path and shape. Raises UserError for a mode that cannot run here or breaks."""
    settings = study.settings(mode)
    if why := unavailable(settings):
        raise UserError("--mode", "must be one that this device can run", mode, why)
    arguments = {"requests": study.requests, "max_steps": num_steps, "plan_settings": settings.measure.plan}
    try:
        with study.on_device(), worker(study, settings, "ranges", proof=True) as started:
            started.ready()
            found = started.ask("stages.workers.walking:walk", **arguments)
    except WorkerFailed as error:
        raise UserError("--mode", "must run", error.reason, "See capture/ for what became of it.") from error
    counts: Counter[tuple[str, str]] = Counter()
    for run in found["path_runs"]:
        counts[f"{run['phase']} padded {run['padded_size']}", run["path"]] += run["count"]
    return [f"{mode} {shape}: {count:,} {path}" for (shape, path), count in sorted(counts.items())]


def main() -> None:
    """Walk, print what the ledger says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", required=True)
    parser.add_argument("--steps", type=int, default=40, help="how many steps of the trace (40)")
    options = parser.parse_args()
    if options.steps < 1:
        raise UserError("--steps", "must be 1 or more", options.steps, "Leave it out for 40.")
    mode = require_item(options.mode, "mode", paths.latest() / "config")
    study = Study(paths.latest())
    sys.stdout.write("\n".join(walked(study, mode, options.steps)) + "\n")
    if study.environment["device"] != "cuda":
        sys.stdout.write("no NVTX ranges: the study's device is a CPU\n")


if __name__ == "__main__":
    run_printing_command(main)
