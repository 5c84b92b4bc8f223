"""Which kernels make the difference between two profiled steps, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

OTHERS = "all others"


class KernelDifference(NamedTuple):
    """Time of one kernel (or `all others`) a step in two modes, us; 0 where a mode does not run it."""

    name: str
    first_us: float
    second_us: float

    @property
    def saved_us(self) -> float:
        """What the second saves over the first."""
        return self.first_us - self.second_us


def kernel_differences(first: Mapping[str, Any], second: Mapping[str, Any], most: int) -> list[KernelDifference]:
    """The `most` names that differ most between two `profile` entries, and the rest together where both sums are known.

    The rows then add up to the difference of the two steps' kernel times.
    """
    times = _by_name(first["top_kernels"]), _by_name(second["top_kernels"])
    every = [KernelDifference(name, times[0].get(name, 0.0), times[1].get(name, 0.0)) for name in times[0] | times[1]]
    shown = sorted(every, key=lambda one: (-abs(one.saved_us), one.name))[:most]
    sums = first.get("kernels_us"), second.get("kernels_us")
    if sums[0] is None or sums[1] is None:
        return shown
    return [*shown, KernelDifference(OTHERS, sums[0] - sum(one.first_us for one in shown), sums[1] - sum(one.second_us for one in shown))]


def _by_name(kernels: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for kernel in kernels:
        found[str(kernel["name"])] = found.get(str(kernel["name"]), 0.0) + float(kernel["total_us"])
    return found
