"""The same inputs again and again: eager against itself first, then the mode against itself."""

from __future__ import annotations

from collections.abc import Iterator

from stages.workers.probes.bench import Bench, answer, difference, relative_error
from stages.workers.probes.probe import Document, Probe, held_to, reported
from stages.workers.service import Service

NUM_REPEATS = 4
MOST_NOISE = {"fp32": 1e-4, "bf16": 5e-2}
"""Of eager's logits: beyond rounding, whatever adds it up."""


def _run(bench: Bench) -> Iterator[Document]:
    """Also sets `bench.repeat_noise`, the distance that later probes allow between calls that should agree."""
    rows = bench.sizes[-1]
    subject = f"decode/{rows}"
    eager_noise = _repeated(bench.eager, rows)
    yield _eager_check(subject, eager_noise, MOST_NOISE[bench.precision])
    eager_noise = min(eager_noise, MOST_NOISE[bench.precision])
    mode_noise = _repeated(bench.service, rows)
    if mode_noise <= eager_noise:
        bench.repeat_noise = eager_noise
        yield held_to("repeated_calls", subject, mode_noise, eager_noise, NUM_REPEATS)
        return
    exact = answer(bench.reference, rows)
    limit = bench.error_limit(relative_error(answer(bench.eager, rows), exact), len(exact))
    if mode_noise <= limit:
        bench.repeat_noise = mode_noise
        yield reported("repeated_calls", subject, mode_noise, NUM_REPEATS, "the mode does not repeat its own answer: a finding")
    else:
        yield held_to("repeated_calls", subject, mode_noise, limit, NUM_REPEATS, "calls with the same inputs disagree")


def _eager_check(subject: str, noise: float, most: float) -> Document:
    if 0 < noise <= most:
        return reported("eager_repeats", subject, noise, NUM_REPEATS, "eager does not repeat its own answer: a finding")
    return held_to("eager_repeats", subject, noise, 0, NUM_REPEATS, "eager against itself")


def _repeated(service: Service, rows: int) -> float:
    first = answer(service, rows)
    return max(difference(answer(service, rows), first) for _ in range(NUM_REPEATS - 1))


PROBE = Probe(
    name="repeated_calls",
    hazards=("warm-up, recording and replay disagree (pytorch#122192)",),
    about="the same prompts and tokens four times: eager against itself, then the mode against itself, bit for bit",
    run=_run,
)
