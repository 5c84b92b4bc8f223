"""What a replayed step costs on the host, and which kernels make the difference between two modes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stages.analysis.kernel_times import OTHERS, KernelDifference, kernel_differences
from stages.analysis.replay_remedies import PARTS, YARDSTICK
from stages.views import words
from stages.views.document import Study, decode_batches, dig, mode_names, part
from stages.views.figures.waterfall import describe
from stages.views.tables.table import Table, dropped_empty

MOST_KERNELS = 8
LONGEST_NAME = 70
_COMMON = ("void ", "at::native::", "(anonymous namespace)::", "<unnamed>::")
_PAIRS = (("R", "CR"), ("E", "C"))


def replay_cost(study: Study) -> Table:
    """Parts down, modes that replay across, at the smallest decode batch, with the documented remedy of each part."""
    batch = next(iter(decode_batches(study)), "")
    costs = {name: part(study, "modes", name, "profile", f"decode/{batch}", "replay_cost") for name in mode_names(study)}
    costs = {name: cost for name, cost in costs.items() if cost}
    rows = [[one.name, *(words.microseconds(cost.get(one.key)) for cost in costs.values()), one.remedy, one.documented_at] for one in PARTS]
    sums = [words.microseconds(sum(words.number(cost.get(one.key)) or 0.0 for one in PARTS)) for cost in costs.values()]
    note = (
        f"Host time a decode step at batch {batch}, without the waiting for the device; profiled, so longer than in a timed step"
        f" (the profiler's dilation is with the bottlenecks). A yardstick, {YARDSTICK}."
    )
    columns = ["part", *costs, "documented remedy", "where"]
    return Table("Replay cost a step", columns, [*rows, ["together", *sums, "", ""]] if costs else [], note, frozenset(columns[-2:]))


def kernel_table(study: Study) -> Table:
    """On a GPU, the kernels that differ most between a factorial's R and CR (else E and C), smallest and largest batch."""
    rows: list[list[str]] = []
    if dig(study, "environment", "device") == "cuda":
        pairs = [_pair(study, part(answer, "cells")) for _, answer in sorted(part(study, "attribution").items())]
        for pair in dict.fromkeys(filter(None, pairs)):
            for batch in _ends(decode_batches(study)):
                rows += _rows(study, describe(batch), pair, f"decode/{batch}")
    columns = ["point", "modes", "kernel", "first", "second", "saved"]
    note = (
        f"Kernel time a step by name, from the profiled window; the {MOST_KERNELS} names that differ most, and all others together."
        " Between R and CR both replay, so the difference is that of the kernels."
    )
    return dropped_empty(Table("Kernels that make the difference", columns, rows, note, frozenset({"modes", "kernel"})))


def _pair(study: Study, cells: Mapping[str, Any]) -> tuple[str, ...]:
    """The two modes to compare; both must have been profiled."""
    for pair in _PAIRS:
        modes = tuple(str(cells.get(cell)) for cell in pair)
        if all(part(study, "modes", mode, "profile") for mode in modes):
            return modes
    return ()


def _ends(batches: list[str]) -> list[str]:
    return list(dict.fromkeys([*batches[:1], *batches[-1:]]))


def _rows(study: Study, where: str, pair: tuple[str, ...], shape: str) -> list[list[str]]:
    first, second = (part(study, "modes", mode, "profile", shape) for mode in pair)
    if not first.get("top_kernels") or not second.get("top_kernels"):
        return []
    found = kernel_differences(first, second, MOST_KERNELS)
    whole = "all kernels" if found[-1].name == OTHERS else "these together"
    total = KernelDifference(whole, sum(one.first_us for one in found), sum(one.second_us for one in found))
    return [[where, " against ".join(pair), _name(one.name), *_times(one)] for one in [*found, total]]


def _name(name: str) -> str:
    """Without the namespaces that all of ATen's kernels share, and cut."""
    for common in _COMMON:
        name = name.replace(common, "")
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def _times(one: KernelDifference) -> list[str]:
    return [words.microseconds(us) if us else words.ABSENT for us in (one.first_us, one.second_us)] + [words.microseconds(one.saved_us)]
