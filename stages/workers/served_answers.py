"""Tokens that requests got under load, against eager serving each request alone on the same weights.

Eager is led along the served tokens, so that one difference does not hide what follows it. Batches round differently, and random
weights make near-ties: a token is a fault only where eager's logits put it further below the best than four times eager's own
largest error at that step, against the reference in higher precision; else it is a tie.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from stages.core.records.load import Difference, ServedAnswers
from stages.workers.probes.bench import TIE, Bench, set_up
from stages.workers.service import Service

LONGEST = 32
"""Tokens compared a request."""


def compare(service: Service, precision: str, baseline: dict[str, Any], sampled: list[dict[str, Any]]) -> dict[str, Any]:
    """The `ServedAnswers` document of a sample (`request_id`, `prompt`, `tokens` each)."""
    bench = set_up(service, precision, baseline, calls_per_shape=1, num_examples=1)
    found = [difference for request in sampled for difference in _differences(bench, request)]
    faults = [difference for difference in found if difference.is_fault]
    return ServedAnswers(
        verdict="wrong" if faults else "correct" if sampled else "not_checked",
        num_requests=len(sampled),
        num_tokens=sum(len(request["tokens"][:LONGEST]) for request in sampled),
        num_ties=len(found) - len(faults),
        num_faults=len(faults),
        first=next(iter(faults or found), None),
    ).model_dump()


def _differences(bench: Bench, request: dict[str, Any]) -> Iterator[Difference]:
    """Where eager would have chosen another token than the one served, along the served ones."""
    tokens = request["tokens"][:LONGEST]
    own, exact = (_along(service, request["prompt"], tokens) for service in (bench.eager, bench.reference))
    best, second = own.topk(2).values.unbind(dim=1)
    given_up = best - own.gather(1, torch.tensor(tokens, device=own.device)[:, None])[:, 0]
    noise = (own - exact).abs().amax(dim=1)
    for step in (given_up != 0).nonzero()[:, 0].tolist():  # a number that is none differs
        yield Difference(
            request_id=request["request_id"],
            token=step,
            margin=_finite(best[step] - second[step]),
            given_up=_finite(given_up[step]),
            noise=_finite(noise[step]),
            is_fault=not bool(given_up[step] <= TIE * noise[step]),
        )


def _along(service: Service, prompt: list[int], tokens: list[int]) -> torch.Tensor:
    """Logits [steps, v] in float64 of one sequence alone, led along these tokens."""
    seen = [service.prefill(0, torch.tensor(prompt, device=service.device))[0][:1].double()]
    for token in tokens[:-1]:
        service.tokens[:1] = token
        seen.append(service.decode(1)[0][:1].double())
    return torch.cat(seen)


def _finite(value: torch.Tensor) -> float | None:
    return float(value) if bool(torch.isfinite(value)) else None
