"""metrics.json: the numbers that two revisions are compared by. One flat object a mode."""

from __future__ import annotations

from typing import Any

from stages.analysis.lifetimes import CACHES
from stages.views import words
from stages.views.document import Study, baseline, dig, mode_names, part, rates, why_not


def metrics(study: Study) -> dict[str, dict[str, float]]:
    """Finite numbers only. A mode that did not run has none; one refuted or wrong only says so (`confirmed`, `correct`)."""
    found = {name: _of_mode(study, name) for name in mode_names(study)}
    return {name: values for name, values in found.items() if values}


def _of_mode(study: Study, name: str) -> dict[str, float]:
    mode = part(study, "modes", name)
    values: dict[str, Any] = {
        "confirmed": _flag(dig(mode, "evidence", "verdict"), "confirmed"),
        "correct": _flag(dig(mode, "correctness", "verdict"), "correct"),
    }
    if mode.get("status") == "ok" and not why_not(study, name):
        values |= _comparables(study, name)
    return {key: number for key, value in values.items() if (number := words.number(value)) is not None}


def _flag(verdict: Any, good: str) -> float | None:
    return None if verdict in (None, "not_checked") else float(verdict == good)


def _comparables(study: Study, name: str) -> dict[str, Any]:
    mode = part(study, "modes", name)
    values: dict[str, Any] = {f"ready_{state}_s": dig(mode, "startup", state, "ready_s") for state in CACHES}
    values |= _steps(mode, compared=name != baseline(study))
    tried = [rate for rate in rates(study) if dig(mode, "load", rate)]
    if tried:
        run = part(mode, "load", tried[-1])
        values |= {"request_goodput": run.get("request_goodput"), "slo_attainment": run.get("slo_attainment")}
        values |= {f"{what}_p50_ms": dig(run, f"{what}_ms", "p50") for what in ("ttft", "tpot")}
    values |= {"max_goodput": dig(mode, "load", "max_goodput"), "peak_bytes": dig(mode, "memory", "peak_bytes")}
    return values | {"graph_pool_bytes": dig(mode, "memory", "graph_pool_bytes")}


def _steps(mode: Any, compared: bool) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for phase in ("decode", "prefill"):
        for size, times in part(mode, "steady_state", phase).items():
            values[f"{phase}_{size}_wall_us"] = dig(times, "wall_us", "median")
    sequence = part(mode, "steady_state", "sequence")
    whole = sequence.get("sequence_s")
    values["sequence_s"] = whole if words.number(whole) is not None else dig(whole, "value")
    if compared:
        values["speedup_sequence"] = dig(sequence, "vs_baseline", "speedup")
        for size, times in part(mode, "steady_state", "decode").items():
            values[f"speedup_decode_{size}"] = dig(times, "vs_baseline", "speedup")
    return values
