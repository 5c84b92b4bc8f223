"""warmup: how long a worker takes from spawn to ready, from cold and from warm compile caches (the startup ladder).

Cold: a fresh process on private, empty caches. Warm: a new process on the same caches. Artifact: empty caches filled
by `torch.compiler.load_cache_artifacts`. Each is proved by cache counters, phases and the folder's listing. The first
cold start leaves its caches in build/caches/, where the later stages find them.
Reads config/<mode>.yaml, trace/plan.json. Writes warmup/<mode>.json.

    python -m stages.warmup --mode compile
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial as bind
from pathlib import Path
from typing import Any

from stages.core.composed import Settings
from stages.core.errors import run_command
from stages.core.partial import Partial
from stages.core.records.startup import CacheUse, MiddleWay, Phases, Start, Startup, WarmupRecord
from stages.instruments.cache_proof import prove
from stages.workers.measurement import Study, cache_folder, mode_command, worker


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
    middle_way = partial.part("middle-way", MiddleWay, bind(_middle_way, study, settings, home)) if counts.middle_way and compiles else None
    for spare in home.parent.glob(f"{home.name}-*"):
        shutil.rmtree(spare, ignore_errors=True)
    return Startup(starts=starts, middle_way=middle_way)


def _middle_way(study: Study, settings: Settings, home: Path) -> MiddleWay:
    """A worker that serves eager from the start and compiles meanwhile, from empty caches."""
    folder = home.with_name(f"{home.name}-middle")
    shutil.rmtree(folder, ignore_errors=True)
    eager = replace(settings, mode=settings.baseline)
    with worker(study, eager, "warmup-middle-way", cache=folder) as started:
        served_s = started.ready()["first_request_s"]
        found = started.ask(
            "stages.workers.middle_way:switch",
            mode=settings.mode,
            precision=settings.precision,
            num_threads=settings.launch.num_threads,
            spawned_s=started.spawned_s,
        )
    return MiddleWay(**{**found, "first_served_s": served_s})


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
    """A worker's startup report as a record, with the verdict on the cache state that it claims."""
    phases = Phases(**report["phases"])
    use = CacheUse(**report["cache_use"])
    verdict, proof = prove(cache, use, phases, transform, report.get("artifact_bytes"))
    if report["missing"]:
        verdict, proof = "not_proven", f"phases unknown: {report['missing']}"
    if any((report.get("cache_state") or {}).get("remote_caches", {}).values()):
        verdict, proof = "refuted", "a remote compile cache is on"
    return Start(
        cache=cache,
        ready_s=report["ready_s"],
        unaccounted_s=report["ready_s"] - sum(phases.model_dump().values()),
        first_request_s=report["first_request_s"],
        phases=phases,
        calls_s=report["calls_s"],
        cache_use=use,
        proved=verdict == "confirmed",
        proof=proof,
        verdict=verdict,
        cache_state=report.get("cache_state"),
        artifact_bytes=report.get("artifact_bytes"),
        pool_s=report.get("pool_s"),
    )


def main() -> None:
    """Measure one mode."""
    mode_command("warmup", __doc__, WarmupRecord, measure)


if __name__ == "__main__":
    run_command(main)
