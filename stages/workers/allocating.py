"""How many sequences really fit: the allocator is held to the device's memory, the caches are made, and every shape runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from stages.instruments import memory
from stages.workers.service import Service

PRECISION = 200  # one in so many sequences


def allocate_sequences(service: Service, device_memory_bytes: int | None, expected: int) -> dict[str, Any]:
    """`checked_sequences`: the most that fit, at most `expected`, to one in 200; None on a CPU. `check`: a sentence.

    The worker has `max_batch` slots already. Where more are tried, the rest is allocated beside them; where fewer, the
    surplus slots' bytes are added to the limit, which leaves the others what they would have without.
    """
    if service.device != "cuda":
        return {"checked_sequences": None, "check": "not checked: a CPU's allocator has no limit"}
    total = torch.cuda.get_device_properties(0).total_memory
    limit = min(device_memory_bytes or total, total) - memory.outside_allocator_bytes()
    try:
        found = most(expected, lambda count: _fits(service, limit, total, count))
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
    return {"checked_sequences": found, "check": f"of {expected:,} computed sequences {found:,} could be allocated with every shape run"}


def most(expected: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `expected` that fits, to one in 200 of it: `expected` itself, else by bisection (0: none)."""
    if expected < 1 or fits(expected):
        return max(0, expected)
    low, high = 0, expected
    while high - low > max(1, expected // PRECISION):
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _fits(service: Service, limit: int, total: int, count: int) -> bool:
    slots = service.model.max_batch
    caches = [*service.keys, *service.values]
    surplus = max(0, slots - count) * sum(cache[0].numel() * cache.element_size() for cache in caches)
    torch.cuda.empty_cache()
    if torch.cuda.memory_reserved() > limit + surplus:  # the allocator would only refuse more
        return False
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
