"""How many sequences really fit: the allocator is held to the device's memory, the caches are made, and every shape runs."""

from __future__ import annotations

from typing import Any

import torch

from stages.instruments import memory
from stages.workers.service import Service

MOST_TRIES = 8


def allocate_sequences(service: Service, device_memory_bytes: int | None, expected: int) -> dict[str, Any]:
    """`checked_sequences`: the most that fit, from `expected` downwards, at most 8 tries; None on a CPU. `check`: a sentence.

    The worker has `max_batch` slots already. Where more are expected, the rest is allocated beside them; where fewer, the
    surplus slots' bytes are added to the limit, which leaves the others what they would have without.
    """
    if service.device != "cuda":
        return {"checked_sequences": None, "check": "not checked: a CPU's allocator has no limit"}
    total = torch.cuda.get_device_properties(0).total_memory
    limit = min(device_memory_bytes or total, total) - memory.outside_allocator_bytes()
    try:
        for count in range(expected, max(0, expected - MOST_TRIES), -1):
            if _fits(service, limit, total, count):
                return {"checked_sequences": count, "check": f"{count} of {expected} sequences were allocated, and every shape ran"}
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
    return {"checked_sequences": 0, "check": f"none of {expected} to {max(1, expected - MOST_TRIES + 1)} sequences could be allocated"}


def _fits(service: Service, limit: int, total: int, count: int) -> bool:
    slots = service.model.max_batch
    caches = [*service.keys, *service.values]
    surplus = max(0, slots - count) * sum(cache[0].numel() * cache.element_size() for cache in caches)
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(min(1.0, (limit + surplus) / total))
    rest: list[torch.Tensor] = []
    try:
        for cache in caches if count > slots else []:
            rest.append(cache.new_empty(count - slots, *cache.shape[1:]))
        for shape in service.shapes():
            service.run(shape)
        service.synchronize()
    except torch.cuda.OutOfMemoryError:
        return False
    finally:
        rest.clear()
    return True
