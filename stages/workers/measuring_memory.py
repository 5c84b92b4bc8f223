"""Bytes of the worker alone on the device, and how many sequences its memory would hold."""

from __future__ import annotations

from stages.instruments import memory
from stages.workers.service import Service


def measure_memory(service: Service, device_memory_bytes: int | None) -> dict[str, int]:
    """The `Memory` document. `max_sequences` = (device - weights - workspace - graph pools) / KV bytes of a slot."""
    weights = sum(tensor.numel() * tensor.element_size() for tensor in (*service.module.parameters(), *service.module.buffers()))
    kv_cache = sum(tensor.numel() * tensor.element_size() for tensor in (*service.keys, *service.values))
    pools = memory.graph_pool_bytes()
    outside = memory.outside_allocator_bytes()
    peak = memory.peak_bytes()
    workspace = max(0, peak - weights - kv_cache - pools) + outside
    available = (device_memory_bytes or _device_bytes(service)) - weights - workspace - pools
    return {
        "weights_bytes": weights,
        "kv_cache_bytes": kv_cache,
        "peak_bytes": peak,
        "reserved_bytes": memory.reserved_bytes(),
        "graph_pool_bytes": pools,
        "outside_allocator_bytes": outside,
        "max_sequences": max(0, available // (kv_cache // service.model.max_batch)),
    }


def _device_bytes(service: Service) -> int:
    import os

    import torch

    if service.device == "cuda":
        return torch.cuda.get_device_properties(0).total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
