"""From a trace and a model's shapes to a plan: scaled lengths, planned shapes, the step sequence."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from fractions import Fraction
from itertools import groupby
from typing import Protocol

from stages.core.protocols import Trace
from stages.core.records.plan import Plan, Request, StepRun
from stages.traces.checks import require
from stages.traces.scheduling import PlanSettings, ScheduledStep, simulate
from stages.traces.statistics import describe

__all__ = ["PlanSettings", "Shapes", "padded", "plan"]


class Shapes(Protocol):
    """What planning needs of a model."""

    context_tokens: int
    max_batch: int
    capture_sizes: list[int]
    prompt_sizes: list[int]


def plan(trace: Trace, model: Shapes, settings: PlanSettings) -> tuple[Plan, list[Request]]:
    """The plan of a trace on a model, and the requests with their lengths as served.

    Shapes are planned only where the step sequence uses them; the largest decode batch always is, since real time
    can bunch requests more than virtual time did. Raises UserError for a broken trace, shapes that do not fit
    together, a request that does not fit the model where lengths are not scaled, or a trace without duration (no rate).
    """
    _check_shapes(model)
    raw = trace.requests()
    _check_adapters(raw, model)
    scaled, length_factor = _scaled(raw, model, settings)
    span_s = _span_s(raw, trace.name)
    steps = simulate(scaled, model.max_batch, settings, lambda tokens: padded(tokens, model.prompt_sizes))
    runs = _runs(steps, model)
    result = Plan(
        trace=trace.name,
        num_requests=len(raw),
        span_s=span_s,
        recorded_rate_per_s=len(raw) / span_s,
        context_tokens=model.context_tokens,
        max_batch=model.max_batch,
        length_factor=length_factor,
        capture_sizes=sorted({model.capture_sizes[-1], *_sizes(runs, "decode")}),
        prompt_sizes=sorted(_sizes(runs, "prefill")),
        num_steps=sum(run.count for run in runs),
        num_decode_steps=sum(run.count for run in runs if run.phase == "decode"),
        runs=runs,
        statistics=describe(raw, scaled, runs),
        scheduler=asdict(settings) | {"scale_lengths": str(settings.scale_lengths).lower()},
    )
    return result, scaled


def padded(size: int, sizes: Sequence[int]) -> int:
    """The smallest of `sizes` (ascending) that holds `size`."""
    index = bisect_left(sizes, size)
    assert index < len(sizes), f"size {size} is above the largest planned size {sizes[-1]}"
    return sizes[index]


def _check_shapes(model: Shapes) -> None:
    for key, sizes in (("capture_sizes", model.capture_sizes), ("prompt_sizes", model.prompt_sizes)):
        ascending = bool(sizes) and sizes[0] >= 1 and sizes == sorted(set(sizes))
        require(ascending, f"model.{key}", "must be positive and ascending, at least one", list(sizes), "Sort them.")
    largest = model.capture_sizes[-1]
    require(largest == model.max_batch, "model.capture_sizes", f"must end with max_batch {model.max_batch}", largest, "Change one.")
    longest = model.prompt_sizes[-1]
    fits = longest <= model.context_tokens
    require(fits, "model.prompt_sizes", f"must not exceed context_tokens {model.context_tokens}", longest, "Lower it.")
    require(model.context_tokens >= 2, "model.context_tokens", "must hold a prompt and an output token", model.context_tokens, "Raise it.")


def _check_adapters(requests: Sequence[Request], model: Shapes) -> None:
    asked = sum(request.adapter_id is not None for request in requests)
    rank = getattr(model, "adapter_rank", 0)
    remedy = "Set it to the adapters' rank, or take a trace without adapters."
    require(not asked or rank > 0, "model.adapter_rank", f"must be above 0: {asked} requests ask for an adapter", rank, remedy)


def _scaled(requests: list[Request], model: Shapes, settings: PlanSettings) -> tuple[list[Request], float]:
    if not settings.scale_lengths:
        _check_fit(requests, model)
        return requests, 1.0
    factor = _length_factor(requests, model)
    return [_shortened(request, factor, model.context_tokens) for request in requests], float(factor)


def _length_factor(requests: list[Request], model: Shapes) -> Fraction:
    """The largest factor, at most 1, with which every request fits the context and every prompt the largest prompt size."""
    longest = max(request.prompt_tokens + request.output_tokens for request in requests)
    longest_prompt = max(request.prompt_tokens for request in requests)
    return min(Fraction(1), Fraction(model.context_tokens, longest), Fraction(model.prompt_sizes[-1], longest_prompt))


def _shortened(request: Request, factor: Fraction, context_tokens: int) -> Request:
    """Both lengths times the factor, rounded up in whole numbers (floats could round differently elsewhere)."""
    prompt = -(-request.prompt_tokens * factor.numerator // factor.denominator)
    output = -(-request.output_tokens * factor.numerator // factor.denominator)
    excess = max(0, prompt + output - context_tokens)  # both rounded up: at most 1
    if prompt > excess:
        prompt -= excess
    else:
        output -= excess
    return request.model_copy(update={"prompt_tokens": prompt, "output_tokens": output})


def _check_fit(requests: list[Request], model: Shapes) -> None:
    remedy = "Set measure.plan.scale_lengths, or use a model with a longer context and prompt sizes."
    for request in requests:
        prompt, output = request.prompt_tokens, request.output_tokens
        rule = f"must fit context_tokens {model.context_tokens} and the largest prompt size {model.prompt_sizes[-1]}"
        fits = prompt + output <= model.context_tokens and prompt <= model.prompt_sizes[-1]
        require(fits, f"trace: request {request.request_id}", rule, f"prompt {prompt} + output {output}", remedy)


def _span_s(requests: list[Request], name: str) -> float:
    """Seconds that the requests stand for: each owns one mean gap, so requests / span is the rate of the gaps."""
    last_s = requests[-1].arrival_s
    require(last_s > 0, f"trace {name}", "must have two different arrival times (else no rate)", f"{len(requests)} at 0 s", "Add some.")
    return last_s * len(requests) / (len(requests) - 1)


def _runs(steps: Iterable[ScheduledStep], model: Shapes) -> list[StepRun]:
    sizes = {"decode": model.capture_sizes, "prefill": model.prompt_sizes}
    counted = ((kind, sum(1 for _ in same)) for kind, same in groupby((step.phase, step.size) for step in steps))
    return [StepRun(phase=phase, size=size, padded_size=padded(size, sizes[phase]), count=count) for (phase, size), count in counted]


def _sizes(runs: list[StepRun], phase: str) -> set[int]:
    return {run.padded_size for run in runs if run.phase == phase}
