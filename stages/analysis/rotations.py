"""From the blocks of a factorial to times per mode, and to differences of cells taken inside one rotation.

One set and rotation gives one value a cell: the mean of the medians of its blocks at that shape. A voided block counts
in no value; a rotation where a cell has no block left drops out of that cell's contrasts only.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from stages.analysis import conditions, statistics
from stages.core.host_readings import readings
from stages.core.records.answer import Estimate, ShapeTimes, TwinPair
from stages.core.records.steps import Block, Rotations, SequenceRun

SEQUENCE = "sequence"
US_PER_S = 1e6


class Turn(NamedTuple):
    """One rotation of one set of processes."""

    set_index: int
    rotation_index: int


Values = Mapping[Turn, Mapping[str, float]]
"""Turn -> cell -> us."""


def shapes(rotations: Rotations) -> list[str]:
    """Shapes that were timed, decode before prefill, ascending."""
    names = {block.shape for block in rotations.blocks}
    return sorted(names, key=lambda name: (name.split("/")[0], int(name.split("/")[1])))


def is_twin(cell: str) -> bool:
    """Whether a cell is the second of an A/A pair (`E#2`)."""
    return "#" in cell


def counted(rotations: Rotations, shape: str) -> list[Block]:
    """Blocks at one shape that count: not voided, nor left out for the conditions they ran under."""
    return conditions.kept(conditions.timed(rotations, shape), rotations.device)


def voided(rotations: Rotations) -> list[str]:
    """What does not count: a sentence a cell and shape, with the first reason and how many blocks or passes have one."""
    reasons: dict[str, list[str]] = {}
    for block in rotations.blocks:
        if block.voided:
            reasons.setdefault(f"{block.cell} at {block.shape}", []).append(block.voided)
    for run in rotations.sequences:
        if run.voided:
            reasons.setdefault(f"{run.cell} in the sequence", []).append(run.voided)
    return [f"{place}: {found[0]}{f' (the first of {len(found)})' if len(found) > 1 else ''}" for place, found in reasons.items()]


def values_at(rotations: Rotations, point: str) -> Values:
    """One value in us a turn and cell, at a shape or for `sequence`."""
    return _by_turn(rotations, point, lambda block: [float(np.median(block.wall_us))], lambda run: [run.sequence_s * US_PER_S])


def loops_at(rotations: Rotations, point: str, half: int | None = None) -> Values:
    """Median of the host's loop beside them, us, of all readings or of every other one (`half`: 0 or 1). Without readings none."""
    start, step = (half, 2) if half is not None else (0, 1)
    return _by_turn(
        rotations,
        point,
        lambda block: _median(readings([block])[start::step]),
        lambda run: _median(run.host_loop_us[start::step]),
    )


def _by_turn(
    rotations: Rotations, point: str, of_block: Callable[[Block], list[float]], of_run: Callable[[SequenceRun], list[float]]
) -> Values:
    """Means of what blocks or passes say that count, some of them nothing."""
    samples: dict[Turn, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    if point == SEQUENCE:
        for run in rotations.sequences:
            if not run.voided:
                samples[Turn(run.set_index, run.rotation_index)][run.cell] += of_run(run)
    else:
        for block in counted(rotations, point):
            samples[Turn(block.set_index, block.rotation_index)][block.cell] += of_block(block)
    return {turn: {cell: float(np.mean(values)) for cell, values in cells.items() if values} for turn, cells in samples.items()}


def _median(readings_us: Sequence[float]) -> list[float]:
    return [float(np.median(readings_us))] if readings_us else []


def weighted(rotations: Rotations, weights: Mapping[str, float]) -> Values:
    """Mean step time over decode shapes, in us, with weights that sum to 1; turns and cells that lack a shape drop out."""
    assert abs(sum(weights.values()) - 1) < 1e-9, "weights must sum to 1"
    by_shape = {shape: values_at(rotations, shape) for shape in weights}
    turns = set.intersection(*(set(values) for values in by_shape.values()))
    result: dict[Turn, dict[str, float]] = {}
    for turn in turns:
        cells = set.intersection(*(set(values[turn]) for values in by_shape.values()))
        result[turn] = {cell: sum(w * by_shape[shape][turn][cell] for shape, w in weights.items()) for cell in cells}
    return result


def difference(values: Values, signs: Mapping[str, float]) -> Estimate | None:
    """A linear contrast of cells in us, such as {E: 1, CR: -1}, from differences inside rotations."""
    return _over_sets(values, signs, lambda cells: sum(sign * cells[cell] for cell, sign in signs.items()))


def log_ratio(values: Values, numerator: str, denominator: str) -> Estimate | None:
    """log(numerator / denominator) from ratios inside rotations, or None when the two never met in one."""
    by_set = log_ratios_by_set(values, numerator, denominator)
    return statistics.estimate(by_set) if by_set else None


def log_ratios_by_set(values: Values, numerator: str, denominator: str) -> list[float]:
    """Set means of log(numerator / denominator)."""
    return _set_means(values, (numerator, denominator), lambda cells: math.log(cells[numerator] / cells[denominator]))


def cell_mean(values: Values, cell: str) -> Estimate | None:
    """Mean time of one cell over sets, us."""
    return _over_sets(values, (cell,), lambda cells: cells[cell])


def set_means(values: Values, cell: str) -> list[float]:
    """Mean time of one cell in each set, us."""
    return _set_means(values, (cell,), lambda cells: cells[cell])


def _over_sets(values: Values, cells: Iterable[str], of: Callable[[Mapping[str, float]], float]) -> Estimate | None:
    by_set = _set_means(values, cells, of)
    return statistics.estimate(by_set) if by_set else None


def _set_means(values: Values, cells: Iterable[str], of: Callable[[Mapping[str, float]], float]) -> list[float]:
    needed = set(cells)
    by_set: dict[int, list[float]] = defaultdict(list)
    for turn, found in values.items():
        if needed <= found.keys():
            by_set[turn.set_index].append(of(found))
    return [float(np.mean(by_set[index])) for index in sorted(by_set)]


def twin_pairs(rotations: Rotations) -> list[tuple[str, str]]:
    """A/A pairs of cell keys: (`E`, `E#2`)."""
    return [(cell.cell.split("#")[0], cell.cell) for cell in rotations.cells if is_twin(cell.cell) and cell.status == "ok"]


def margin_at(rotations: Rotations, values: Values) -> float:
    """The margin (log-ratio) for comparisons at one point: 1 % or the largest spread of its A/A pairs."""
    return statistics.margin([statistics.spread(log_ratios_by_set(values, *pair)) for pair in twin_pairs(rotations)])


def twins(rotations: Rotations) -> list[TwinPair]:
    """Every A/A pair at every point; `different` is judged by the least margin, since the pair itself sets the other."""
    modes = {cell.cell: cell.mode for cell in rotations.cells}
    found = []
    for point in [*shapes(rotations), SEQUENCE]:
        values = values_at(rotations, point)
        for first, second in twin_pairs(rotations):
            ratio = log_ratio(values, first, second)
            if ratio:
                different = statistics.classify(ratio, statistics.margin([])) in ("faster", "slower")
                shown = statistics.exponentiated(ratio)
                found.append(
                    TwinPair(mode=modes[first], point=point, ratio=shown.value, low=shown.low, high=shown.high, different=different)
                )
    return found


def shape_times(rotations: Rotations, cell: str, shape: str) -> ShapeTimes | None:
    """The three clocks of one cell at one shape, pooled over sets; None when nothing counts. No comparison yet."""
    blocks = [block for block in counted(rotations, shape) if block.cell == cell]
    if not blocks:
        return None
    device_us = [value for block in blocks for value in block.device_us]
    return ShapeTimes(
        wall_us=statistics.timing([value for block in blocks for value in block.wall_us]),
        device_us=statistics.timing(device_us) if device_us else None,
        pipelined_us=statistics.timing([block.pipelined_us for block in blocks]),
        vs_baseline=None,
        factorial=rotations.factorial,
    )
