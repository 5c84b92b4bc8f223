"""Which batch sizes to capture: the sizes that make the trace's decode steps cheapest for a number of graphs.

A step of batch b runs at the smallest captured size s >= b and takes that size's measured time. Choosing at most k
sizes to minimise the sum over steps is a shortest path over ascending sizes, solved exactly by dynamic programming in
O(n^2 k): best[j][s] = min over r < s of best[j-1][r] + steps(r < b <= s) * time(s).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

CLOSE_ENOUGH = 0.01


class Sizes(NamedTuple):
    """A choice of sizes (ascending), and the seconds that the trace's decode steps then take."""

    capture_sizes: list[int]
    decode_s: float


def best_sizes(steps: Mapping[int, int], step_us: Mapping[int, float], num_graphs: int) -> Sizes | None:
    """The cheapest choice of at most `num_graphs` of the sizes in `step_us` (us a step) for `steps` (batch -> steps).

    None when no measured size holds the largest batch, or no graph may be captured.
    """
    largest = max((batch for batch, count in steps.items() if count), default=0)
    sizes = sorted(step_us)
    if num_graphs < 1 or not sizes or sizes[-1] < largest:
        return None
    held = _cumulative(steps, sizes)
    layers = [_Layer([held[i] * step_us[size] for i, size in enumerate(sizes)], [-1] * len(sizes))]
    for _ in range(1, min(num_graphs, len(sizes))):
        layers.append(_next_layer(layers[-1], held, [step_us[size] for size in sizes]))
    first = bisect_left(sizes, largest)
    layer, end = min(((j, i) for j in range(len(layers)) for i in range(first, len(sizes))), key=lambda at: layers[at[0]].cost_us[at[1]])
    return Sizes(_traced(layers, layer, end, sizes), layers[layer].cost_us[end] / 1e6)


def fewest_close_sizes(steps: Mapping[int, int], step_us: Mapping[int, float]) -> Sizes | None:
    """The fewest sizes within 1 % of the cheapest choice of any number; None where there is no choice."""
    cheapest = best_sizes(steps, step_us, len(step_us))
    if cheapest is None:
        return None
    for num_graphs in range(1, len(cheapest.capture_sizes)):
        found = best_sizes(steps, step_us, num_graphs)
        if found and found.decode_s <= cheapest.decode_s * (1 + CLOSE_ENOUGH):
            return found
    return cheapest


def decode_s(steps: Mapping[int, int], step_us: Mapping[int, float], sizes: Sequence[int]) -> float | None:
    """Seconds of the trace's decode steps with these sizes (ascending); None where one was not measured or holds no batch."""
    total_us = 0.0
    for batch, count in steps.items():
        index = bisect_left(sizes, batch)
        if index == len(sizes) or sizes[index] not in step_us:
            return None
        total_us += count * step_us[sizes[index]]
    return total_us / 1e6


def vllm_option(sizes: Sequence[int]) -> str:
    """The same choice as vLLM takes it."""
    return f"--compilation-config '{{\"cudagraph_capture_sizes\": {list(sizes)}}}'"


class _Layer(NamedTuple):
    """Cost of the cheapest choice that ends at each size, and the index of the size before it (-1: none)."""

    cost_us: list[float]
    before: list[int]


def _cumulative(steps: Mapping[int, int], sizes: Sequence[int]) -> list[int]:
    """Steps whose batch each size holds."""
    newly = [0] * len(sizes)
    for batch, count in steps.items():
        if count:
            newly[bisect_left(sizes, batch)] += count
    return list(accumulate(newly))


def _next_layer(last: _Layer, held: Sequence[int], times: Sequence[float]) -> _Layer:
    cost, before = [math.inf] * len(times), [-1] * len(times)
    for end in range(1, len(times)):
        options = [(last.cost_us[r] + (held[end] - held[r]) * times[end], r) for r in range(end)]
        cost[end], before[end] = min(options)
    return _Layer(cost, before)


def _traced(layers: Sequence[_Layer], layer: int, end: int, sizes: Sequence[int]) -> list[int]:
    chosen = []
    while end >= 0:
        chosen.append(sizes[end])
        end = layers[layer].before[end]
        layer -= 1
    return chosen[::-1]
