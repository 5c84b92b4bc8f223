"""capture: which path every step of the trace took in one mode, from run-time counters, and the verdict on its claim.

A proof process walks the trace's steps in their real order with class-level counters on captures, recordings,
replays and compiled calls; then one profiled window attributes kernels to launches; then memory is read with the
worker alone on the device. No gain is credited to a mode that is not `confirmed` here.
Reads config/<mode>.yaml, trace/. Writes capture/<mode>.json.

    python -m stages.capture --mode cudagraph_trees
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stages.core import paths
from stages.core.composed import Settings
from stages.core.errors import run_command
from stages.core.partial import Partial
from stages.core.records.path import (
    AdapterUse,
    CaptureRecord,
    Evidence,
    GraphBytes,
    Memory,
    MemorySample,
    PathProof,
    PathRun,
    ProfiledStep,
    ShapeCoverage,
)
from stages.instruments.compiler_sentences import limit_reached, unknown_thread
from stages.workers.churn import churn_of
from stages.workers.evidence import judge
from stages.workers.measurement import Study, mode_command, worker
from stages.workers.process import WorkerFailed


def measure(study: Study, settings: Settings, partial: Partial) -> PathProof:
    """Walk, profile, weigh: the proof of one mode."""
    capture = settings.measure.capture
    replays = settings.mode["replay"] != "none"
    max_steps = capture.max_replayed_steps if replays else capture.max_launched_steps
    with worker(study, settings, "capture", proof=True) as started, explained(started.log):
        started.ready()
        walked = started.ask(
            "stages.workers.walking:walk", requests=study.requests, max_steps=max_steps, plan_settings=settings.measure.plan
        )
        memory = started.ask("stages.workers.measuring_memory:measure_memory", device_memory_bytes=settings.device_memory_bytes)
        trace = paths.build() / "profiles" / f"{settings.mode['name']}.json.gz"
        profile = started.ask("stages.workers.profiling:profile_shapes", num_calls=capture.profiled_calls, keep=str(trace))
        limit = {"device_memory_bytes": settings.device_memory_bytes, "expected": memory["max_sequences"]}
        memory |= started.ask("stages.workers.allocating:allocate_sequences", **limit)
    return proof_of(study, settings, walked, [ProfiledStep(**step) for step in profile], Memory(**memory))


@contextmanager
def explained(log: Path) -> Iterator[None]:
    """Add to a worker's failure what its error does not say: which guard reached the recompile limit, or a thread unknown to Trees."""
    try:
        yield
    except WorkerFailed as error:
        said = limit_reached(log.read_text(encoding="utf-8", errors="replace")) or unknown_thread(error.log_tail)
        if said is None:
            raise
        raise WorkerFailed(f"{error.reason.rstrip(': ')}; {said}", error.log_tail) from error


def proof_of(study: Study, settings: Settings, walked: dict[str, Any], profile: list[ProfiledStep], memory: Memory) -> PathProof:
    """The record from what the worker saw."""
    path_runs = [PathRun(**run) for run in walked["path_runs"]]
    claim = {key: str(settings.mode[key]) for key in ("family", "transform", "replay", "documented_at", "stability")}
    evidence: Evidence = judge(claim, walked, path_runs, profile, settings.device)
    return PathProof(
        claim=claim,
        evidence=evidence,
        path_runs=path_runs,
        steps_walked=sum(run.count for run in path_runs),
        steps_in_trace=study.plan.num_steps,
        profile=profile,
        memory=memory,
        shapes=[ShapeCoverage(**shape) for shape in walked.get("shapes", [])],
        churn=churn_of(walked) if walked.get("windows") else None,
        memory_samples=[MemorySample(**sample) for sample in walked.get("memory_samples", [])],
        adapters=AdapterUse(**walked["adapters"]) if walked.get("adapters") else None,
        graphs=[GraphBytes(**graph) for graph in walked.get("graphs", [])],
    )


def main() -> None:
    """Measure one mode."""
    mode_command("capture", __doc__, CaptureRecord, measure)


if __name__ == "__main__":
    run_command(main)
