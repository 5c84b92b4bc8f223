"""warmup: how long a worker takes from spawn to ready, from cold and from warm compile caches (the startup ladder).

Cold: a fresh process on private, empty caches. Warm: a new process on the same caches. Artifact: empty caches filled
by `torch.compiler.load_cache_artifacts`. Each is proved by cache counters, phases and the folder's listing. The first
cold start leaves its caches in build/caches/, where the later stages find them.
Reads config/<mode>.yaml, trace/plan.json. Writes warmup/<mode>.json.

    python -m stages.warmup --mode compile
"""

from __future__ import annotations

import argparse
import shutil
from functools import partial as bind
from pathlib import Path
from typing import Any

from stages.core import paths
from stages.core.composed import Settings
from stages.core.errors import run_command
from stages.core.partial import Partial
from stages.core.records.startup import CacheUse, Phases, Start, Startup, WarmupRecord
from stages.workers.measurement import Study, cache_folder, measure_mode, require_item, worker


def measure(study: Study, settings: Settings, partial: Partial) -> Startup:
    """All starts of one mode: cold, warm, artifact."""
    home = cache_folder(study, settings)
    artifact = home / "artifact.bin"
    counts = settings.measure.warmup
    compiles = settings.mode["transform"] != "none"
    starts = []
    for index in range(counts.cold_starts):
        folder = home if index == 0 else home.with_name(f"{home.name}-cold{index}")
        starts.append(partial.part(f"cold-{index}", Start, bind(_start, study, settings, "cold", folder, None, artifact)))
    for index in range(counts.warm_starts):
        starts.append(partial.part(f"warm-{index}", Start, bind(_start, study, settings, "warm", home, None, None)))
    for index in range(counts.artifact_starts if compiles else 0):
        folder = home.with_name(f"{home.name}-artifact{index}")
        starts.append(partial.part(f"artifact-{index}", Start, bind(_start, study, settings, "artifact", folder, artifact, None)))
    for spare in home.parent.glob(f"{home.name}-*"):
        shutil.rmtree(spare, ignore_errors=True)
    return Startup(starts=starts)


def _start(study: Study, settings: Settings, cache: str, folder: Path, load_from: Path | None, save_to: Path | None) -> Start:
    if cache != "warm":
        shutil.rmtree(folder, ignore_errors=True) if load_from or not save_to else _empty(folder)
    with worker(study, settings, f"warmup-{cache}", cache=folder, artifact=load_from) as started:
        report = started.ready()
        if save_to and settings.mode["transform"] not in ("none", "dynamo"):
            started.ask("stages.workers.starting:save_artifacts", file=str(save_to))
    return as_start(cache, report, settings.mode["transform"])


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def as_start(cache: Any, report: dict[str, Any], transform: str) -> Start:
    """A worker's startup report as a record, with the proof of its cache state."""
    phases = Phases(**report["phases"])
    use = CacheUse(**report["cache_use"])
    proved, proof = prove(cache, use, phases, transform)
    if report["missing"]:
        proved, proof = False, f"phases unknown: {report['missing']}"
    return Start(
        cache=cache,
        ready_s=report["ready_s"],
        unaccounted_s=report["ready_s"] - sum(phases.model_dump().values()),
        first_request_s=report["first_request_s"],
        phases=phases,
        calls_s=report["calls_s"],
        cache_use=use,
        proved=proved,
        proof=proof,
    )


def prove(cache: str, use: CacheUse, phases: Phases, transform: str) -> tuple[bool, str]:
    """Whether counters, phases and listing agree with the cache state claimed, and the sentence that says so.

    Counters alone prove nothing: a cached graph with a missing kernel hits and still compiles for seconds.
    """
    if transform in ("none", "dynamo"):
        return use.fx_graph_misses == use.fx_graph_hits == 0, f"{transform} uses no compile cache"
    hits, misses = use.fx_graph_hits, use.fx_graph_misses
    if cache == "cold":
        proved = use.num_files_before == 0 and hits == 0 and misses > 0 and use.num_files_after > 0
        return proved, f"{use.num_files_before} files before, {misses} misses, {hits} hits, {use.num_files_after} files after"
    loaded = hits > 0 or use.aot_autograd_hits > 0
    proved = loaded and misses == 0 and use.fx_graph_bypasses == 0
    return proved, f"{hits} graph hits, {use.aot_autograd_hits} AOT hits, {misses} misses, kernels {phases.kernel_compile_s:.2f} s"


def main() -> None:
    """Measure one mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", required=True)
    mode = require_item(parser.parse_args().mode, "mode", paths.latest() / "config")
    measure_mode("warmup", mode, WarmupRecord, measure)


if __name__ == "__main__":
    run_command(main)
