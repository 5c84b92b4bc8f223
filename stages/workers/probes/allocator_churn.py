"""Memory freed, taken by others and overwritten between replays."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import torch

from stages.instruments import memory
from stages.workers.probes.bench import Bench, answer, difference
from stages.workers.probes.probe import Document, Probe, held_to, held_to_error_rule
from stages.workers.service import Service

BLOCK_ELEMENTS = (64, 1_000, 4_096, 65_536, 300_000)
BLOCKS_OF_EACH = 4


def _run(bench: Bench) -> Iterator[Document]:
    """First what is free keeps its place; then it goes back to the device, so that others come into its place.

    Memory that another tensor has taken already is not free: what was computed from it is wrong before, and stays the same.
    """
    rows, subject = bench.sizes[-1], f"decode/{bench.sizes[-1]}"
    before, *others = (answer(service, rows) for service in bench.trio)
    yield held_to_error_rule(bench, "before_the_churn", subject, (before, *others), 1)
    others.clear()
    gc.collect()
    for name, churn in (("allocator_churn", _overwrite), ("allocator_emptied", _hand_back)):
        seen = difference(answer(bench.service, rows, before_prefill=churn, before_decode=churn), before)
        yield held_to(name, subject, seen, bench.repeat_noise, 1)
        if seen > bench.repeat_noise:
            return  # reading memory that was handed back would end the process


def _overwrite(service: Service) -> None:
    """Write NaN over free memory: blocks of many sizes, and on CUDA every block that torch's allocator has free."""
    blocks = [_filled(size, service.device) for size in BLOCK_ELEMENTS for _ in range(BLOCKS_OF_EACH)]
    if service.device == "cuda":
        blocks += [_filled(num_bytes // 4, "cuda") for num_bytes in memory.free_block_bytes()]
        blocks += [torch.full((size,), float("nan"), pin_memory=True) for size in BLOCK_ELEMENTS]
    service.synchronize()
    blocks.clear()


def _filled(size: int, device: str) -> torch.Tensor:
    return torch.full((size,), float("nan"), device=device)


def _hand_back(service: Service) -> None:
    _overwrite(service)
    if service.device == "cuda":
        torch.cuda.empty_cache()


PROBE = Probe(
    name="allocator_churn",
    hazards=("a captured pointer was freed and reused (aiter#5393)", "host memory of a copy was reused (pytorch#146924)"),
    about="between steps, overwrites free memory with NaN, then also hands it back; the answer was right, and stays the same, bit for bit",
    run=_run,
)
