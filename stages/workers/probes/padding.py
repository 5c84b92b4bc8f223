"""What stands in rows and columns that nobody asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from stages.workers.probes.bench import Bench, answer, clear, difference
from stages.workers.probes.probe import Document, Probe, held_to
from stages.workers.service import Service


def real_rows(sizes: list[int]) -> int:
    """A number of sequences whose step has padding rows where the plan allows it: one below the largest size with a gap."""
    gaps = [high - 1 for low, high in zip([0, *sizes], sizes, strict=False) if high - low > 1]
    return gaps[-1] if gaps else sizes[0]


def _run(bench: Bench) -> Iterator[Document]:
    rows, service = real_rows(bench.sizes), bench.service
    size = service.decode_shape(rows).partition("/")[2]
    clean, full = answer(service, rows), answer(service, bench.sizes[-1])
    poisoned = answer(service, rows, before_prefill=_fill_prompts, before_decode=partial(_poison, rows=rows))
    clear(service)
    subject, noise = f"{rows} rows in decode/{size}", bench.repeat_noise
    yield held_to("padding", subject, difference(poisoned, clean), noise, 2, "other slots NaN, prompt tails filled")
    healed = difference(answer(service, bench.sizes[-1]), full)
    yield held_to("padding_then_full", f"decode/{bench.sizes[-1]}", healed, noise, 2, "a full batch as before the poison")


def _poison(service: Service, rows: int) -> None:
    """NaN in the cache of every slot from `rows` on; their tokens and positions near the largest value."""
    for tensor in (*service.keys, *service.values):
        tensor[rows:] = float("nan")
    service.tokens[rows:] = service.model.vocabulary() - 1
    service.positions[rows:] = service.plan.context_tokens - 2


def _fill_prompts(service: Service) -> None:
    """A token in every place of the prompt buffers: what a longer prompt before would leave behind."""
    for buffer in service.prompts.values():
        buffer.fill_(service.model.vocabulary() - 1)


PROBE = Probe(
    name="padding",
    hazards=("padding of a bucket leaks into real rows (vllm#33638, #35175)",),
    about="poisons all rows beyond the real ones with NaN and prompt tails with tokens; real rows must not change by a bit",
    run=_run,
)
