"""Memory freed, taken by others and overwritten between replays."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import torch

from stages.workers.probes.bench import Bench, answer, difference
from stages.workers.probes.probe import Document, Probe, held_to
from stages.workers.service import Service

NUM_ROUNDS = 2
BLOCK_ELEMENTS = (64, 1_000, 4_096, 65_536, 300_000)
BLOCKS_OF_EACH = 4


def _run(bench: Bench) -> Iterator[Document]:
    rows = bench.sizes[-1]
    before = answer(bench.service, rows)
    seen = 0.0
    gc.collect()
    for _ in range(NUM_ROUNDS):
        seen = max(seen, difference(answer(bench.service, rows, before_prefill=_churn, before_decode=_churn), before))
    yield held_to("allocator_churn", f"decode/{rows}", seen, bench.repeat_noise, NUM_ROUNDS)


def _churn(service: Service) -> None:
    """Write NaN over blocks of many sizes from whatever memory is free, and free them."""
    blocks = [torch.full((size,), float("nan"), device=service.device) for size in BLOCK_ELEMENTS for _ in range(BLOCKS_OF_EACH)]
    blocks.clear()
    if service.device == "cuda":
        torch.cuda.empty_cache()


PROBE = Probe(
    name="allocator_churn",
    hazards=("a captured pointer was freed and reused (aiter#5393)", "host memory of a copy was reused (pytorch#146924)"),
    about="between steps, overwrites free memory with NaN and hands it back; the answer stays the same, bit for bit",
    run=_run,
)
