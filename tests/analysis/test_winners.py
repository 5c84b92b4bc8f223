"""Naming a winner among many, and the coverage of intervals by simulated A/A studies."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from stages.analysis import rotations as turns
from stages.analysis import statistics, winners
from stages.core.records.steps import Cell, Rotations, SequenceRun

PROCESS_OFFSET = 0.006  # between identical workers, measured on an H200
ROTATION_NOISE = 0.004
DRIFT = 0.3  # of eager over a set: tens of per cent, common to the cells of a rotation
CELLS = ("E", "C", "R", "CR", "dynamo", "trees")


def simulated(
    rng: np.random.Generator, num_sets: int, cells: tuple[str, ...], num_rotations: int = 6
) -> dict[turns.Turn, dict[str, float]]:
    """Equal cells: an offset a process, a drift common to a rotation, noise a block."""
    values = {}
    for set_index in range(num_sets):
        offsets = rng.normal(0, PROCESS_OFFSET, len(cells))
        for rotation in range(num_rotations):
            logs = offsets + DRIFT * rng.random() + rng.normal(0, ROTATION_NOISE, len(cells))
            values[turns.Turn(set_index, rotation)] = {cell: 1000 * math.exp(log) for cell, log in zip(cells, logs, strict=True)}
    return values


@pytest.mark.parametrize("num_sets", [3, 6])
def test_interval_of_equal_cells_covers_no_difference_in_at_least_93_percent_of_simulated_studies(num_sets: int) -> None:
    rng = np.random.default_rng(7 + num_sets)
    covered, different, studies = 0, 0, 1500
    for _ in range(studies):
        found = turns.log_ratio(simulated(rng, num_sets, ("E", "E#2")), "E", "E#2")
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0 <= found.high
        different += statistics.classify(found, statistics.margin([])) in ("faster", "slower")
    assert 0.93 <= covered / studies <= 0.97
    assert different / studies <= 0.025


def as_rotations(values: dict[turns.Turn, dict[str, float]], num_sets: int) -> Rotations:
    runs = [
        SequenceRun(cell=cell, mode=f"mode_{cell}", **turn._asdict(), sequence_s=us / 1e6, num_steps=1, num_decode_steps=1)
        for turn, cells in values.items()
        for cell, us in cells.items()
    ]
    cells = [Cell(cell=cell, mode=f"mode_{cell}", status="ok") for cell in next(iter(values.values()))]
    sizes = {"num_sets": num_sets, "decode_context_tokens": 8, "sequence_steps": 1, "sequence_steps_in_trace": 1}
    return Rotations(factorial="f", cells=cells, blocks=[], sequences=runs, **sizes)


def with_margin_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "margin_at", lambda *_: 0.0)


def test_among_equal_modes_a_winner_is_named_in_at_most_5_percent_of_studies_even_without_a_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    with_margin_zero(monkeypatch)
    rng = np.random.default_rng(3)
    named = 0
    for _ in range(200):
        found = winners.winner(as_rotations(simulated(rng, 6, CELLS, num_rotations=2), 6), turns.SEQUENCE, CELLS)
        assert found is not None
        assert found.num_compared == 5
        named += found.mode != "undecided"
    assert named <= 10


def faster(values: dict[turns.Turn, dict[str, float]], factors: dict[str, float]) -> Rotations:
    return as_rotations({turn: {cell: us * factors.get(cell, 1.0) for cell, us in cells.items()} for turn, cells in values.items()}, 6)


def test_mode_that_is_clearly_ahead_wins_and_the_closest_other_is_given() -> None:
    values = simulated(np.random.default_rng(1), 6, CELLS)
    found = winners.winner(faster(values, {"CR": 0.5, "R": 0.6}), turns.SEQUENCE, CELLS)
    assert found is not None
    assert (found.mode, found.tied, found.confidence) == ("mode_CR", [], pytest.approx(0.99))
    assert found.least_speedup == pytest.approx(1.2, rel=0.02)


def test_modes_that_are_not_told_apart_leave_the_winner_undecided() -> None:
    values = simulated(np.random.default_rng(2), 6, CELLS)
    found = winners.winner(faster(values, {"CR": 0.5, "trees": 0.501}), turns.SEQUENCE, CELLS)
    assert found is not None
    assert (found.mode, {found.fastest, *found.tied}) == ("undecided", {"mode_CR", "mode_trees"})


def test_fastest_is_named_by_the_rotations_that_all_cells_have() -> None:
    """B lacks the fastest rotation of a drifting machine and A the slowest one; A is 1 % faster in all that they share."""
    drift = {turns.Turn(index, 0): 1.0 + 0.1 * index for index in range(6)}
    values = {turn: {"A": 99.0 * speed, "B": 100.0 * speed} for turn, speed in drift.items()}
    del values[turns.Turn(0, 0)]["A"], values[turns.Turn(5, 0)]["B"]
    rotations = as_rotations({turns.Turn(9, 9): {"A": 149.0, "B": 150.0}, **values}, 7)
    found = winners.winner(rotations, turns.SEQUENCE, ["A", "B"])
    assert found is not None
    assert found.fastest == "mode_A"
    assert found.least_speedup > 1


def test_one_cell_or_unusable_ones_have_no_winner() -> None:
    values = simulated(np.random.default_rng(2), 2, ("E", "C"))
    assert winners.winner(as_rotations(values, 2), turns.SEQUENCE, ["E"]) is None


def test_correction_widens_with_the_number_of_comparisons() -> None:
    confidences = [winners.corrected(number) for number in range(1, 8)]
    assert confidences[0] == statistics.CONFIDENCE
    assert all(low < high for low, high in pairwise(confidences))
