"""The first screen: the verdict in one sentence, what it was measured on, one line why, and the price."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from stages.views import price as prices
from stages.views import words
from stages.views.document import (
    Study,
    arrival_rates,
    baseline,
    decode_batches,
    dig,
    headline_choice,
    part,
    why_not,
)
from stages.views.figures.waterfall import describe
from stages.views.kernels import family
from stages.views.roles import factorials


@dataclass(frozen=True)
class Fact:
    """A name and its value on the context line; `full` is what the value shortens, or empty."""

    name: str
    value: str
    full: str = ""


def sentence(study: Study) -> str:
    """The verdict's own sentence."""
    return words.clean(dig(study, "verdict", "sentence") or "No verdict: nothing in this study could be compared.")


def context(study: Study) -> list[Fact]:
    """What the verdict holds for: model, release, device, precision, attention, shapes, arrivals, limits."""
    model, machine, trace = part(study, "model"), part(study, "environment"), part(study, "trace")
    kernels = model.get("attention_kernels") or []
    found = {
        "model": model.get("name"),
        "torch": machine.get("torch"),
        "driver": machine.get("driver"),
        "device": machine.get("gpu") or machine.get("cpu") or machine.get("device"),
        "memory limit": words.size(limit) if (limit := dig(study, "choices", "device_memory_bytes")) else "",
        "precision": model.get("precision"),
        "attention": _joined(dict.fromkeys(family(str(name)) for name in kernels)),
        "shapes": _shapes(study),
        "trace": _with(trace.get("name"), _traced(trace)),
        "arrivals": _joined(words.rate(rate) for rate in arrival_rates(study)),
        "SLO": _limits(study),
    }
    full = {"attention": words.clean(_joined(kernels))}
    return [Fact(name, words.clean(value), full.get(name, "")) for name, value in found.items() if value]


def why(study: Study) -> str:
    """Eager's bottleneck, then what compiling and replaying save, in one line."""
    for batch in [*decode_batches(study), "sequence"]:
        where = dig(study, "modes", baseline(study), "bottleneck", batch)
        savings = _savings(study, batch)
        if where or savings:
            return words.clean(f"{_bottleneck(study, where, batch)} {savings}".strip())
    return ""


def _bottleneck(study: Study, where: Any, batch: str) -> str:
    said = dig(where, "sentence") or (f"{describe(batch)} is {dig(where, 'name')}" if where else "")
    return f"{baseline(study)}: {str(said).rstrip('.')}." if said else ""


def price(study: Study) -> str:
    """What the recommended mode costs: ready time, graph memory, sequences lost, p99 with churn (p50 where no rate has a p99)."""
    name = chosen(study)
    if not name:
        return ""
    cost = prices.price(study, name)
    tail = next((tail for tail, value in cost.tpot.items() if value != words.ABSENT), "")
    starts = [f"{value} {state}" for state, value in cost.ready.items() if value != words.ABSENT]
    parts = [
        f"ready after {', '.join(starts)}" if starts else "",
        f"{cost.graphs} of graphs" if cost.graphs != words.ABSENT else "",
        _lost(cost.lost, prices.held(study)),
        f"{tail} TPOT {cost.tpot[tail]} {prices.where(study, tail)} with compiles and captures left in" if tail else "",
    ]
    return words.clean(f"{name}: {'; '.join(text for text in parts if text)}.") if any(parts) else ""


def chosen(study: Study) -> str:
    """The recommended mode of the first screen, or an empty string (undecided, nothing recommended)."""
    choice = headline_choice(study)
    name = str(choice[2].get("mode")) if choice else ""
    return name if name in study["modes"] and not why_not(study, name) else ""


def _savings(study: Study, batch: str) -> str:
    """In ms a step, from the factorial of the headline's speed-up where it knows this point; without replay what compiling saves."""
    names = {"interaction": "that either would save", "kernels_given_replay": "only kernels", "replay_given_compiled": "only replay"}
    answers = {name: part(study, "attribution", name, batch) for name in factorials(study)}
    for name, found in answers.items():
        saved = {text: value for key, text in names.items() if (value := words.number(dig(found, key, "value"))) is not None}
        if saved and words.number(dig(found, "total", "value")) is not None:
            listed = ", ".join(f"{_ms(value)} {text}" for text, value in saved.items())
            return (
                f"Compiling and replaying together save {_saved(found, 'total')} a step in the mean ({describe(batch)}, {name}): {listed}."
            )
    for name, found in answers.items():
        if words.number(dig(found, "compiled_alone", "value")) is not None:
            return f"Compiling saves {_saved(found, 'compiled_alone')} a step in the mean ({describe(batch)}, {name})."
    return ""


def _saved(found: Mapping[str, Any], contrast: str) -> str:
    """A contrast in ms with its interval where it has one."""
    value, low, high = (words.number(dig(found, contrast, key)) for key in ("value", "low", "high"))
    interval = "" if low is None or high is None else f" [{words.plain(low / 1e3)}, {words.plain(high / 1e3)}]"
    return f"{_ms(value)}{interval}"


def _ms(value_us: float | None) -> str:
    return words.ABSENT if value_us is None else words.plain(value_us / 1e3, "ms")


def _lost(lost: str, of: str) -> str:
    if lost == words.ABSENT:
        return ""
    return "no concurrent sequence lost" if lost == "0" else f"{lost} fewer concurrent sequences (of {of})"


def _with(name: Any, more: str) -> str:
    return f"{name} ({more})" if name and more else str(name or "")


def _joined(values: Iterable[Any] | None) -> str:
    return values if isinstance(values, str) else ", ".join(str(value) for value in values or [])


def _shapes(study: Study) -> str:
    shapes = part(study, "trace", "shapes")
    return "; ".join(f"{phase} {_joined(shapes.get(phase))}" for phase in ("decode", "prefill") if shapes.get(phase))


def _traced(trace: Mapping[str, Any]) -> str:
    """How many requests, and by what their lengths were scaled to fit the context."""
    requests, factor = words.number(trace.get("requests")), words.number(trace.get("length_factor"))
    scaled = f", lengths x {words.significant(factor)}" if factor is not None and factor != 1 else ""
    return f"{words.count(requests)} requests{scaled}" if requests is not None else ""


def _limits(study: Study) -> str:
    limits = part(study, "choices", "slo")
    return ", ".join(f"{key.removesuffix('_ms').upper()} {words.given(value)} ms" for key, value in sorted(limits.items(), reverse=True))
