"""What compiled kernels and replay each save, alone and together, from differences inside rotations.

The four cells of a factorial are E (eager), C (compiled), R (replayed) and CR (both). Shapley shares are those of the
two-player game v(C) = E - C, v(R) = E - R, v(CR) = E - CR (L. S. Shapley, 1953).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from stages.analysis import rotations as turns
from stages.analysis.rotations import Values
from stages.core.records.answer import Contrasts, Estimate
from stages.core.records.path import ProfiledStep

SIGNS: dict[str, dict[str, float]] = {
    "total": {"E": 1, "CR": -1},
    "compiled_alone": {"E": 1, "C": -1},
    "replay_alone": {"E": 1, "R": -1},
    "kernels_given_replay": {"R": 1, "CR": -1},
    "replay_given_compiled": {"C": 1, "CR": -1},
    "interaction": {"E": 1, "C": -1, "R": -1, "CR": 1},
}
"""interaction = (E - C) + (E - R) - (E - CR): positive when the two remove the same overhead."""

CELLS = ("E", "C", "R", "CR")


class Point(NamedTuple):
    """A shape or `sequence` with its values, the objections to its cells (cell -> reason), and profiles (cell -> profile)."""

    name: str
    values: Values
    objections: Mapping[str, str]
    profiles: Mapping[str, ProfiledStep]


def contrasts(point: Point) -> Contrasts:
    """Every contrast of one point in us; None where a cell has an objection or was not timed, and `missing` says why."""
    cells = {cell for found in point.values.values() for cell in found if not turns.is_twin(cell)}
    objections = dict(point.objections) | _attention_objections(point)
    objections |= {cell: "not timed" for cell in CELLS if cell not in cells and cell not in objections}
    usable = {cell for cell in cells if cell not in objections}
    found = {name: turns.difference(point.values, signs) if signs.keys() <= usable else None for name, signs in SIGNS.items()}
    ratios = {cell: turns.log_ratio(point.values, "E", cell) if {"E", cell} <= usable else None for cell in CELLS}
    means = {cell: turns.cell_mean(point.values, cell) for cell in sorted(usable)}
    busy_saved_us = _busy_saved(point, found["compiled_alone"])
    return Contrasts(
        point=point.name,
        **found,
        closure_error_us=_closure_error(found),
        cell_us={cell: mean.value for cell, mean in means.items() if mean},
        set_us={cell: turns.set_means(point.values, cell) for cell, mean in means.items() if mean},
        measured_speedup=math.exp(ratios["CR"].value) if ratios["CR"] else None,
        product_of_speedups=_product(ratios["C"], ratios["R"]),
        shapley_us=_shapley(found),
        busy_saved_us=busy_saved_us,
        idle_saved_us=_idle_saved(found["compiled_alone"], busy_saved_us),
        missing=[f"{cell}: {reason}" for cell, reason in sorted(objections.items())],
    )


def _attention_objections(point: Point) -> dict[str, str]:
    """Cells whose attention operator is not that of E: a confound, so their contrasts stop."""
    found = {cell: profile.attention_operators for cell, profile in point.profiles.items()}
    reference = found.get("E")
    if reference is None:
        return {}
    return {
        cell: f"attention kernels differ from those of E ({_named(operators)} against {_named(reference)})"
        for cell, operators in found.items()
        if set(operators) != set(reference)
    }


def _named(operators: Sequence[str]) -> str:
    return ", ".join(operators) or "no fused one"


def _closure_error(found: Mapping[str, Estimate | None]) -> float | None:
    total, compiled, replay, interaction = (found[name] for name in ("total", "compiled_alone", "replay_alone", "interaction"))
    if not (total and compiled and replay and interaction):
        return None
    return compiled.value + replay.value - interaction.value - total.value


def _product(compiled: Estimate | None, replayed: Estimate | None) -> float | None:
    return math.exp(compiled.value + replayed.value) if compiled and replayed else None


def _shapley(found: Mapping[str, Estimate | None]) -> dict[str, float]:
    first = {"compiled": found["compiled_alone"], "replay": found["replay_alone"]}
    second = {"compiled": found["kernels_given_replay"], "replay": found["replay_given_compiled"]}
    pairs = {name: (first[name], second[name]) for name in first}
    shares = {name: (alone.value + given.value) / 2 for name, (alone, given) in pairs.items() if alone and given}
    return shares if len(shares) == len(first) else {}


def _busy_saved(point: Point, compiled_alone: Estimate | None) -> float | None:
    if compiled_alone is None or not {"E", "C"} <= point.profiles.keys():
        return None
    return point.profiles["E"].busy_us - point.profiles["C"].busy_us


def _idle_saved(compiled_alone: Estimate | None, busy_saved_us: float | None) -> float | None:
    return None if compiled_alone is None or busy_saved_us is None else compiled_alone.value - busy_saved_us
