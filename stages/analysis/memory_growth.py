"""Whether a worker's memory grows along the trace, by a slope test on the samples of the walk."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scipy.stats import kendalltau

from stages.core.records.path import MemorySample
from stages.core.trends import slope as theil_sen

FEWEST_SAMPLES = 10
SIGNIFICANCE = 0.01
SMALLEST_GROWTH_BYTES = 4 << 20  # twice the granularity in which a device gives memory
SERIES = ("allocated_bytes", "reserved_bytes", "graph_pool_bytes", "outside_allocator_bytes")


def memory_growth(samples: Sequence[MemorySample]) -> dict[str, dict[str, Any]]:
    """A verdict a series, from the second half of the walk (the first may still warm up); empty with under 10 samples in it.

    `grows` when Kendall's tau rejects "no trend" at 1 % (one-sided) and the Theil-Sen slope, carried over the half, is
    4 MiB or more; else `steady`. `bytes_per_1000_steps` is that slope.
    """
    late = samples[len(samples) // 2 :]
    if len(late) < FEWEST_SAMPLES:
        return {}
    return {name: _verdict([sample.step for sample in late], [getattr(sample, name) for sample in late]) for name in SERIES}


def _verdict(steps: Sequence[int], values: Sequence[int]) -> dict[str, Any]:
    slope = theil_sen(steps, values)
    grown = slope * (steps[-1] - steps[0])
    trends = len(set(values)) > 1 and bool(kendalltau(steps, values, alternative="greater").pvalue < SIGNIFICANCE)
    return {"verdict": "grows" if trends and grown >= SMALLEST_GROWTH_BYTES else "steady", "bytes_per_1000_steps": 1000 * slope}
