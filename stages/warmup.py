"""warmup: how long a worker takes from spawn to ready, from cold and from warm compile caches (the startup ladder).

Cold: a fresh process on private, empty caches. Warm: a new process on the same caches. Artifact: empty caches filled
by `torch.compiler.load_cache_artifacts`. They are made in rounds of one each, and each is proved by cache counters,
phases and the folder's listing. The first cold start leaves its caches in build/caches/, where the later stages find
them. `stages.rotated_starts` makes the same starts beforehand, with the modes in turn.
Reads config/<mode>.yaml, trace/plan.json. Writes warmup/<mode>.json.

    python -m stages.warmup --mode compile
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import partial as bind
from pathlib import Path
from typing import Any

from stages.core.cache_proof import prove
from stages.core.composed import Settings
from stages.core.errors import run_command
from stages.core.partial import Partial
from stages.core.records.startup import CacheUse, MiddleWay, Phases, Start, Startup, WarmupRecord
from stages.core.timestamps import now
from stages.workers.measurement import Study, cache_folder, mode_command, worker

CLOSURE = 0.05  # of the ready time, that phases may miss


def measure(study: Study, settings: Settings, partial: Partial) -> Startup:
    """All starts of one mode in rounds: one cold, one warm, one from the artifact, and again. Then the middle way."""
    home = cache_folder(study, settings)
    starts = [start for index in range(num_rounds(settings)) for start in measure_round(study, settings, partial, index)]
    wanted = settings.measure.warmup.middle_way and settings.mode["transform"] != "none"
    middle_way = partial.part("middle-way", MiddleWay, bind(_middle_way, study, settings, home)) if wanted else None
    for spare in home.parent.glob(f"{home.name}-*"):
        shutil.rmtree(spare, ignore_errors=True)
    return Startup(starts=starts, middle_way=middle_way)


def num_rounds(settings: Settings) -> int:
    """Rounds that hold every start of one mode."""
    counts = settings.measure.warmup
    return max(counts.cold_starts, counts.warm_starts, counts.artifact_starts)


def measure_round(study: Study, settings: Settings, partial: Partial, index: int) -> list[Start]:
    """The starts of one round; those that were made before are taken from `partial`. The first cold one fills the caches that stay.

    A mode whose cold start left nothing to carry has no artifact start.
    """
    home, counts = cache_folder(study, settings), settings.measure.warmup
    artifact = home / "artifact.bin"

    def made(cache: str, count: int, folder: Path, load_from: Path | None, save_to: Path | None) -> list[Start]:
        make = bind(_start, study, settings, cache, folder, load_from, save_to)
        return [partial.part(f"{cache}-{index}", Start, make)] if index < count else []

    cold = home if index == 0 else home.with_name(f"{home.name}-cold{index}")
    starts = made("cold", counts.cold_starts, cold, None, artifact) + made("warm", counts.warm_starts, home, None, None)
    if not artifact.is_file():
        return starts
    return starts + made("artifact", counts.artifact_starts, home.with_name(f"{home.name}-artifact{index}"), artifact, None)


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
    began_at = now()
    with worker(study, settings, f"warmup-{cache}", cache=folder, artifact=load_from) as started:
        report = started.ready()
        if save_to and settings.mode["transform"] not in ("none", "dynamo"):
            started.ask("stages.workers.starting:save_artifacts", file=str(save_to))
    return as_start(cache, report, settings.mode["transform"]).model_copy(update={"started_at": began_at})


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
    unaccounted_s = report["ready_s"] - sum(phases.model_dump().values())
    if verdict == "confirmed" and abs(unaccounted_s) > CLOSURE * report["ready_s"]:
        verdict, proof = "not_proven", f"phases miss {unaccounted_s / report['ready_s']:.1%} of the ready time; {proof}"
    return Start(
        cache=cache,
        ready_s=report["ready_s"],
        unaccounted_s=unaccounted_s,
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
