"""study.json as MLflow metrics: named `<stage>/<what>_<unit>`, the same names in every mode, so one chart compares modes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stages.tracking.content import numbers, part
from stages.views import document

_CLOCKS = ("wall_us", "device_us", "pipelined_us")
_QUANTILES = {"median": "p50", "p90": "p90", "p99": "p99", "n": "n"}
_LOAD_HEADLINE = {
    "request_goodput",
    "slo_attainment",
    *(f"{what}_ms_{at}" for what in ("ttft", "tpot", "e2el") for at in ("p50", "p90", "p99")),
}
Series = dict[str, list[tuple[int, float]]]


def of_mode(study: document.Study, mode: str) -> dict[str, float]:
    """Metrics of one mode. A mode whose gain may not be shown has times, but no `speedup` and no break-even."""
    node = document.part(study, "modes", mode)
    credited = not document.why_not(study, mode)
    return {
        **_under("warmup", numbers(node.get("startup"))),
        **_under("capture", {**numbers(node.get("evidence")), **numbers(node.get("memory")), **_confirmed(node)}),
        **_under("steady_state", {**_shapes(node, credited), **_sequence(node, credited)}),
        **_under("load", _load(node)),
        **_under("correctness", _correctness(node)),
        **_under("attribution", {**_named("bottleneck", node), **_named("floor", node)}),
        **_under("attribution", _named("lifetime", node) if credited else {}),
    }


def of_study(study: document.Study) -> dict[str, float]:
    """Metrics of the parent run: how the modes fared, and every contrast of every factorial."""
    labels = [document.label(study, mode) for mode in study["modes"]]
    found = {"study/num_modes": float(len(labels)), "study/num_proved": float(labels.count("ok"))}
    for mode in document.shown_modes(study):
        speedup = document.dig(study, "modes", mode, "steady_state", "sequence", "vs_baseline", "speedup")
        found.update(_under("study", numbers(speedup, (part(mode), "sequence_speedup"))))
    for factorial, answer in document.part(study, "attribution").items():
        for point, contrasts in _points(answer).items():
            found.update(_under("attribution", _contrasts(f"{part(factorial)}_{part(point)}", contrasts)))
    return found


def series_of_mode(study: document.Study, mode: str) -> Series:
    """Curves of one mode: ECDFs of step times (step = percent of calls), completions (step = lifetime in whole s)."""
    node = document.part(study, "modes", mode)
    found: Series = {}
    for shape, times in _each_shape(node):
        values = document.part(times, "wall_us").get("ecdf") or []
        last = max(len(values) - 1, 1)
        found[f"steady_state/{shape}_wall_us_ecdf"] = _by_step([(100 * index / last, value) for index, value in enumerate(values)])
    completions = {} if document.why_not(study, mode) else document.part(node, "lifetime", "completions")
    for rate, caches in completions.items():
        for cache, points in caches.items():
            found[f"lifetime/{part(rate)}_{part(cache)}_completions"] = _by_step(points)
    return {name: points for name, points in found.items() if points}


def _by_step(points: Any) -> list[tuple[int, float]]:
    return sorted({round(step): float(value) for step, value in points}.items())  # MLflow steps are integers


def _under(stage: str, found: Mapping[str, float]) -> dict[str, float]:
    return {f"{stage}/{name}": value for name, value in found.items()}


def _named(section: str, node: Mapping[str, Any]) -> dict[str, float]:
    return numbers(node.get(section), (section,)) if isinstance(node.get(section), Mapping) else {}


def _confirmed(node: Mapping[str, Any]) -> dict[str, float]:
    verdict = document.dig(node, "evidence", "verdict")
    return {"confirmed": float(verdict == "confirmed")} if verdict else {}


def _each_shape(node: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    steady_state = document.part(node, "steady_state")
    phases = [phase for phase in ("decode", "prefill", "shapes") if isinstance(steady_state.get(phase), Mapping)]
    return [(f"{phase}_{part(size)}", times) for phase in phases for size, times in steady_state[phase].items()]


def _shapes(node: Mapping[str, Any], credited: bool) -> dict[str, float]:
    found: dict[str, float] = {}
    for shape, times in _each_shape(node):
        for clock in _CLOCKS:
            for name, quantile in _QUANTILES.items():
                found.update(numbers(document.dig(times, clock, name), (shape, clock, quantile)))
        if credited:
            found.update(numbers(document.dig(times, "vs_baseline", "speedup"), (shape, "speedup")))
    return found


def _sequence(node: Mapping[str, Any], credited: bool) -> dict[str, float]:
    sequence = document.part(node, "steady_state", "sequence")
    seconds = sequence.get("sequence_s")
    value = seconds.get("value") if isinstance(seconds, Mapping) else seconds
    speedup = document.dig(sequence, "vs_baseline", "speedup") if credited else None
    found = {"sequence_s": value, "sequence_tokens_per_s": sequence.get("tokens_per_s"), "sequence_speedup": speedup}
    return {name: number for key, number_ in found.items() for name, number in numbers(number_, (key,)).items()}


def _load(node: Mapping[str, Any]) -> dict[str, float]:
    load = document.part(node, "load")
    tried = {rate: run for rate, run in load.items() if isinstance(run, Mapping) and "request_goodput" in run}
    rates = {rate: {name: value for name, value in run.items() if name != "batch_histogram"} for rate, run in tried.items()}
    found = numbers(load.get("max_goodput"), ("max_goodput",))
    for rate, run in rates.items():
        found.update(numbers(run, (part(rate),)))
    headline = "recorded" if "recorded" in rates else next(iter(document.sort_numeric(rates)), "")
    return found | {name: value for name, value in numbers(rates.get(headline)).items() if name in _LOAD_HEADLINE}


def _correctness(node: Mapping[str, Any]) -> dict[str, float]:
    verdict = document.dig(node, "correctness", "verdict")
    checks = document.part(node, "correctness").get("checks") or []
    failed = sum(document.dig(check, "verdict") == "fail" for check in checks)
    passed = {"passed": float(verdict == "correct")} if verdict in ("correct", "wrong") else {}
    return {**passed, "num_checks": float(len(checks)), "num_failed": float(failed)} if passed else {}


def _points(answer: Any) -> Mapping[str, Any]:
    return {point: node for point, node in answer.items() if isinstance(node, Mapping) and "total" in node}


def _contrasts(prefix: str, contrasts: Any) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in contrasts.items():
        if isinstance(value, Mapping) and "value" in value:
            found.update(numbers(value["value"], (prefix, f"{part(name)}_us")))
        else:
            found.update(numbers(value, (prefix, part(name))))
    return found
