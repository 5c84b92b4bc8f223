"""study.json: the whole answer of a study in one document, from which every view is drawn."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from stages.analysis import conditions
from stages.analysis import rotations as turns
from stages.analysis.reading import StudyRecords
from stages.analysis.study_modes import mode_section
from stages.core.records.answer import Answer
from stages.core.records.steps import Rotations, SteadyStateRecord

SCHEMA_VERSION = 1
LARGEST_BYTES = 5_000_000
FEWEST_POINTS = 25


def study_document(records: StudyRecords, answer: Answer) -> dict[str, Any]:
    """study.json: JSON types only, finite numbers, at most 5 MB (curves are thinned, strips cut, to stay under it)."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "name": records.params.name,
        "created_at": max((record.ended_at for record in records.all()), default=""),
        "environment": dict(records.environment) | {"hosts": _hosts(records)},
        "model": _model(records),
        "trace": _trace(records),
        "choices": _choices(records),
        "baseline": records.baseline,
        "modes": {mode: mode_section(records, answer.modes[mode], mode) for mode in records.modes},
        "attribution": {name: _factorial(records, answer, name) for name in records.factorials},
        "verdict": _verdict(answer),
        "commands": _commands(records),
    }
    return limited(_finite(document))


def limited(document: dict[str, Any], largest_bytes: int = LARGEST_BYTES) -> dict[str, Any]:
    """The document under a size: curves and strips are halved until it fits."""
    num_points = 200
    while len(json.dumps(document, indent=1)) > largest_bytes and num_points > FEWEST_POINTS:
        num_points //= 2
        document = _thinned(document, num_points)
    return document


def _thinned(value: Any, num_points: int) -> Any:
    if isinstance(value, dict):
        return {key: _thin(key, item, num_points) for key, item in value.items()}
    return [_thinned(item, num_points) for item in value] if isinstance(value, list) else value


def _thin(key: str, value: Any, num_points: int) -> Any:
    if key == "ecdf" and len(value) > num_points:
        return [value[round(index * (len(value) - 1) / (num_points - 1))] for index in range(num_points)]
    if key == "strip" and isinstance(value, dict) and len(value["runs"]) > 10 * num_points:
        kept = value["runs"][: 10 * num_points]
        return {"runs": kept, "num_steps_cut": value["num_steps_cut"] + sum(run[3] for run in value["runs"][10 * num_points :])}
    return _thinned(value, num_points)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        assert math.isfinite(value), "study.json holds finite numbers only"
        return float(f"{value:.7g}")
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def _hosts(records: StudyRecords) -> list[dict[str, Any]]:
    hosts = {(record.host.hostname, record.host.gpu_uuid) for record in records.all() if record.host.hostname}
    return [{"hostname": name, "gpu_uuid": uuid} for name, uuid in sorted(hosts, key=str)]


def _model(records: StudyRecords) -> dict[str, Any]:
    """The composed node of the model, with what the baseline's profile says about attention."""
    node = dict(records.configs[records.baseline].get("model", {}))
    node.pop("_target_", None)
    data = records.capture[records.baseline].data
    kernels = sorted({kernel for profile in (data.profile if data else []) for kernel in profile.attention_operators})
    weights = data.memory.weights_bytes if data else None
    return {**node, "precision": records.params.precision, "attention_kernels": kernels, "weights_bytes": weights}


def _trace(records: StudyRecords) -> dict[str, Any]:
    plan = records.plan
    return {
        "name": plan.trace,
        "requests": plan.num_requests,
        "steps": plan.num_steps,
        "decode_steps": plan.num_decode_steps,
        "shapes": {"decode": plan.capture_sizes, "prefill": plan.prompt_sizes},
        "length_factor": plan.length_factor,
        "span_s": plan.span_s,
        "recorded_rate_per_s": plan.recorded_rate_per_s,
        "context_tokens": plan.context_tokens,
        "max_batch": plan.max_batch,
        "statistics": plan.statistics,
        "scheduler": plan.scheduler,
    }


def _choices(records: StudyRecords) -> dict[str, Any]:
    params = records.params
    return {
        "modes": records.modes,
        "measure": params.measure,
        "device": params.device,
        "device_memory_bytes": params.device_memory_bytes,
        "slo": {"ttft_ms": params.slo.ttft_ms, "tpot_ms": params.slo.tpot_ms},
        "arrival_rates": params.arrival_rates,
        "lifetimes_s": params.lifetimes_s,
        "factorials": params.factorials,
        "overrides": params.overrides,
    }


def _factorial(records: StudyRecords, answer: Answer, name: str) -> dict[str, Any]:
    """Points by batch size; prefill by `prefill/<tokens>`; `sequence` and both weightings; what the A/A pairs say."""
    found, record = answer.factorials[name], records.steady_state[name]
    twins = [pair.model_dump() for pair in found.twins]
    points = {point.removeprefix("decode/"): entry.model_dump() for point, entry in found.points.items()}
    return points | {
        "cells": found.cells,
        "cell_reasons": found.cell_reasons,
        "num_sets": found.num_sets,
        "measured": _measured(record),
        "together": record.data.together if record.data else None,
        "twins": {"different": sum(pair.different for pair in found.twins), "of": len(twins), "pairs": twins},
        "voided": _voided(records, name),
        "winners": {point.removeprefix("decode/"): entry.model_dump() for point, entry in found.winners.items()},
        "conditions": found.conditions,
        "follows_host": {
            point.removeprefix("decode/"): {cell: one.model_dump() for cell, one in cells.items()}
            for point, cells in found.follows_host.items()
        },
        "speed_shift": found.speed_shift.model_dump() if found.speed_shift else None,
        "ceilings": record.data.ceilings.model_dump() if record.data and record.data.ceilings else None,
        "timer": record.data.timer.model_dump() if record.data and record.data.timer else None,
        "heat": _heat(record.data) if record.data else {},
        "went_on": _went_on(record.data) if record.data else [],
        "stopped": record.data.stopped if record.data else [],
        "switch_us": conditions.switch_costs_us(record.data) if record.data else {},
    }


def _measured(record: SteadyStateRecord) -> dict[str, Any] | None:
    """When and on which machine; None where nothing ran. Two studies with the same entry hold one record."""
    if record.data is None:
        return None
    at = {key: getattr(record, key) for key in ("started_at", "ended_at")}
    return at | {key: getattr(record.host, key) for key in ("hostname", "gpu_uuid")}


def _heat(data: Rotations) -> dict[str, float]:
    """Mean seconds of the sequence by mode in the heat, the fastest first; empty where all cells were in every set."""
    passes: dict[str, list[float]] = {}
    for run in data.heat:
        if not run.voided:
            passes.setdefault(run.mode, []).append(run.sequence_s)
    means = {mode: sum(found) / len(found) for mode, found in passes.items()}
    return dict(sorted(means.items(), key=lambda item: item[1]))


def _went_on(data: Rotations) -> list[str]:
    """Modes of the sets after the heat, whatever was found about their path and answers; empty where there was no heat."""
    return sorted({cell.mode for cell in data.cells if cell.status == "ok"}) if data.heat else []


def _voided(records: StudyRecords, name: str) -> list[str]:
    data = records.steady_state[name].data
    if data is None:
        return []
    return turns.voided(data)


def _verdict(answer: Answer) -> dict[str, Any]:
    """`recommended` names modes only; `choices` has the numbers behind each."""
    full = answer.verdict.model_dump()
    names = {at: {rate: choice.mode for rate, choice in rates.items()} for at, rates in answer.verdict.recommended.items()}
    return full | {"recommended": names, "choices": full["recommended"]}


def _commands(records: StudyRecords) -> list[str]:
    fixed = ["python -m stages.environment", "python -m stages.compose", "python -m stages.trace"]
    measured = [record.command for record in records.all() if record.command]
    return ["dvc repro", *fixed, *dict.fromkeys(measured), "python -m stages.attribution", "python -m stages.report"]
