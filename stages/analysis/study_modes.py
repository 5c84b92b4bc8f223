"""One mode's part of study.json."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from stages.analysis import arguments, coverage, memory_growth, queueing, served_answers, services, statistics
from stages.analysis.lifetimes import CACHES, replaced
from stages.analysis.reading import StudyRecords
from stages.analysis.startup_causes import known_cause
from stages.core.records.answer import ModeAnswer
from stages.core.records.base import Record
from stages.core.records.lifetime import Lifetime
from stages.core.records.load import Load, LoadRun
from stages.core.records.path import PathProof
from stages.core.records.startup import Start, Startup

LONGEST_STRIP = 2000
MOST_NAMED = 20  # requests that a compile or recording hit
CLAIM = ("family", "transform", "replay", "documented_at", "stability")


def mode_section(records: StudyRecords, answer: ModeAnswer, mode: str) -> dict[str, Any]:
    """Everything measured about one mode, under the names of the schema."""
    status, reason = status_of(records, mode)
    warmup, capture = records.warmup[mode].data, records.capture[mode].data
    load = records.load[mode].data
    return {
        "status": status,
        "reason": reason,
        "claim": _claim(records, capture, mode),
        "evidence": capture.evidence.model_dump() if capture else None,
        "coverage": _coverage(records, capture, answer, mode) if capture else None,
        "startup": _startup(warmup) if warmup else {},
        "middle_way": warmup.middle_way.model_dump() if warmup and warmup.middle_way else None,
        "memory": capture.memory.model_dump() | {"graphs": [graph.model_dump() for graph in capture.graphs]} if capture else None,
        "steady_state": _steady_state(answer),
        "repeats": {_batch(point): entry.model_dump() for point, entry in answer.repeats.items()},
        "load": _load(load) if load else {},
        "bottleneck": _bottleneck(records, answer, mode),
        "profile": {f"{step.phase}/{step.size}": step.model_dump() for step in capture.profile} if capture else {},
        "correctness": served_answers.correctness_section(records, mode),
        "lifetime": _lifetime(records, answer.lifetime) if answer.lifetime else None,
        "floor": {_batch(shape): entry.model_dump() for shape, entry in answer.floor.items()},
        "records": _records(records, mode),
    }


def status_of(records: StudyRecords, mode: str) -> tuple[str, str]:
    """A mode's status over its stages, and why: the worst of unavailable, failed; skipped when nothing ran."""
    found = records.of_mode(mode)
    for status in ("unavailable", "failed"):
        broken = [record for record in found if record.status == status]
        if broken:
            return status, "; ".join(_reasons(broken))
    if not any(record.status == "ok" for record in found):
        return "skipped", found[0].reason
    return "ok", "; ".join(f"{record.stage}: {record.reason}" for record in found if record.status != "ok")


def _reasons(broken: list[Record[Any]]) -> list[str]:
    """Each reason once, with the stages that gave it."""
    stages: dict[str, list[str]] = {}
    for record in broken:
        stages.setdefault(record.reason, []).append(record.stage)
    return [f"{', '.join(names)}: {reason}" for reason, names in stages.items()]


def _claim(records: StudyRecords, capture: PathProof | None, mode: str) -> dict[str, str]:
    node = records.configs[mode].get("mode", {})
    stated = {key: str(node[key]) for key in CLAIM if key in node}
    return {**stated, **(capture.claim if capture else {})}


def _coverage(records: StudyRecords, capture: PathProof, answer: ModeAnswer, mode: str) -> dict[str, Any]:
    runs = [[run.path, run.phase, run.padded_size, run.count] for run in capture.path_runs]
    cut = sum(run.count for run in capture.path_runs[LONGEST_STRIP:])
    strip = {"runs": runs[:LONGEST_STRIP], "num_steps_cut": cut}
    step_us = {int(_batch(shape)): times.wall_us.median for shape, times in answer.steady_state.items() if shape.startswith("decode/")}
    return {
        "steps_walked": capture.steps_walked,
        "steps_in_trace": capture.steps_in_trace,
        "strip": strip,
        **coverage.coverage(capture, records.plan),
        "advice": coverage.advice(records.plan, step_us, records.warmup[mode].data, capture.graphs),
        "churn": capture.churn.model_dump() if capture.churn else None,
        "adapters": capture.adapters.model_dump() if capture.adapters else None,
        "memory_growth": memory_growth.memory_growth(capture.memory_samples),
    }


def _startup(startup: Startup) -> dict[str, Any]:
    by_cache = {cache: [start for start in startup.starts if start.cache == cache] for cache in CACHES}
    return {cache: _starts(found) for cache, found in by_cache.items() if found}


def _starts(found: list[Start]) -> dict[str, Any]:
    """Medians over the starts of one cache state; phases and calls of the start nearest to the median."""
    middle = float(median(start.ready_s for start in found))
    typical = min(found, key=lambda start: abs(start.ready_s - middle))
    told = typical if not typical.proved else next((start for start in found if not start.proved), typical)
    return {
        "ready_s": middle,
        "low_s": min(start.ready_s for start in found),
        "high_s": max(start.ready_s for start in found),
        "n": len(found),
        "unaccounted_s": typical.unaccounted_s,
        "first_request_s": float(median(start.first_request_s for start in found)),
        "phases": typical.phases.model_dump(),
        "calls_s": typical.calls_s,
        "cache_use": typical.cache_use.model_dump(),
        "cache_state": typical.cache_state.model_dump() if typical.cache_state else None,
        "pool_s": typical.pool_s,
        "proved": all(start.proved for start in found),
        "verdict": _worst(found),
        "proof": told.proof,
        "cause": known_cause(told),
    }


def _worst(found: list[Start]) -> str | None:
    """The verdict on the cache state over all starts; None in records that say only whether it was proved."""
    return next((word for word in ("refuted", "not_proven", "confirmed") if any(start.verdict == word for start in found)), None)


def _steady_state(answer: ModeAnswer) -> dict[str, Any]:
    found: dict[str, Any] = {"decode": {}, "prefill": {}, "sequence": answer.sequence.model_dump() if answer.sequence else None}
    for shape, times in answer.steady_state.items():
        phase, _, size = shape.partition("/")
        found[phase][size] = times.model_dump()
    return found


def _load(load: Load) -> dict[str, Any]:
    runs = {run.rate: _run(run) | {"queueing": queueing.sentence(run, load.max_goodput)} for run in load.runs}
    return runs | load.model_dump(exclude={"runs"})


def _run(run: LoadRun) -> dict[str, Any]:
    """A rate without its single requests: their distributions, and their tails without those that a compile, capture or collection hit."""
    shown = run.model_dump(exclude={"requests", "answers"})
    for name in ("ttft_ms", "tpot_ms"):
        values = [value for request in run.requests if (value := getattr(request, name)) is not None]
        spared = [value for request in run.requests if not request.hit_by and (value := getattr(request, name)) is not None]
        shown[name] |= {"ecdf": statistics.ecdf(values)}
        shown[f"{name}_without_hit"] = statistics.percentiles(spared).model_dump()
    hit = [request for request in run.requests if request.hit_by]
    named = [{key: getattr(request, key) for key in ("request_id", "hit_by", "ttft_ms", "tpot_ms")} for request in hit[:MOST_NAMED]]
    return shown | {"num_hit": len(hit), "hit_requests": named}


def _bottleneck(records: StudyRecords, answer: ModeAnswer, mode: str) -> dict[str, Any]:
    """By shape, with the name of the shape that takes most time; the baseline's also with what could be saved at most."""
    dominant = arguments.dominant_bottleneck(records, answer)
    shapes: dict[str, Any] = {}
    for shape, entry in answer.bottleneck.items():
        least_us = answer.floor[shape].floor_us if shape in answer.floor else None
        kernels_us = None if least_us is None else max(0.0, entry.busy_us - least_us)
        ceilings = {"replay_us": entry.wall_us - entry.busy_us, "kernels_us": kernels_us}
        shapes[_batch(shape)] = entry.model_dump() | ({"ceilings": ceilings} if mode == records.baseline else {})
    return shapes | {"name": dominant.name if dominant else None}


def _batch(shape: str) -> str:
    return shape.removeprefix("decode/")


def _lifetime(records: StudyRecords, lifetime: Lifetime) -> dict[str, Any]:
    """`break_even_s` and `break_even_answer` are those at the first arrival rate of params.yaml."""
    rate = services.rate_key(records.params.arrival_rates[0]) if records.params.arrival_rates else services.SATURATION
    first: Mapping[str, Any] = lifetime.break_even.get(rate, {})
    return lifetime.model_dump() | {
        "rate": rate,
        "replaced": {f"{every_s:g}": _replaced(lifetime, every_s) for every_s in records.params.lifetimes_s},
        "break_even_s": {cache: entry.lifetime_s for cache, entry in first.items()},
        "break_even_answer": {cache: entry.answer for cache, entry in first.items()},
    }


def _replaced(lifetime: Lifetime, every_s: float) -> dict[str, Any]:
    """What starting costs a fleet whose workers are replaced at that interval, by cache state."""
    return {cache: replaced(ready_s, every_s)._asdict() for cache, ready_s in lifetime.ready_s.items()}


def _records(records: StudyRecords, mode: str) -> dict[str, Any]:
    keys = {"status", "reason", "log_tail", "started_at", "ended_at", "command"}
    return {record.stage: record.model_dump(include=keys) for record in records.of_mode(mode)}
