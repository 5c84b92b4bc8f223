"""A study measured twice: equal runs pass at the stated rate, a run that moved does not."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest

from stages.analysis.repeat import repeat, welch
from stages.views.repeating import Repetition, as_markdown

OFFSET = 0.006  # between identical workers, measured on an H200


def study(rng: np.random.Generator, factor: float = 1.0, num_sets: int = 6, points: int = 12) -> dict[str, Any]:
    """Two cells at many points, process offsets only; `factor` slows the replaying one."""

    def sets(us: float) -> list[float]:
        return [us * math.exp(rng.normal(0, OFFSET)) for _ in range(num_sets)]

    at = {str(point): {"total": None, "set_us": {"E": sets(1000.0), "R": sets(200.0 * factor)}} for point in range(1, points + 1)}
    medians = {key: {"wall_us": {"median": float(np.mean(found["set_us"]["R"]))}} for key, found in at.items()}
    replaying = {"claim": {"replay": "manual"}, "steady_state": {"decode": medians}}
    eager = {"claim": {"replay": "none"}, "steady_state": {"decode": {"1": {"wall_us": {"median": 1000.0}}}}}
    factorial = {**at, "cells": {"E": "eager", "R": "cuda_graph"}}
    return {"name": "s", "created_at": "now", "attribution": {"f": factorial}, "modes": {"eager": eager, "cuda_graph": replaying}}


def test_intervals_of_equal_runs_contain_0_in_95_percent_of_simulated_studies() -> None:
    rng = np.random.default_rng(4)
    covered = [cell.is_covered for _ in range(60) for cell in repeat(study(rng), study(rng)).cells]
    assert 0.94 <= sum(covered) / len(covered) <= 0.97


def test_equal_runs_come_back_and_the_report_says_so() -> None:
    rng = np.random.default_rng(4)
    before, after = study(rng), study(rng)
    found = repeat(before, after)
    assert (found.holds, len(found.cells), len(found.medians)) == (True, 24, 12)
    text = as_markdown(Repetition(before, after, found))
    assert "24 of 24 intervals of the difference contain 0 (100.0%, wanted 95%)." in text
    assert "12 of 12 medians of replaying modes moved at most 1%" in text


@pytest.mark.parametrize("factor", [1.03, 0.97])
def test_run_that_moved_by_3_percent_does_not_come_back(factor: float) -> None:
    rng = np.random.default_rng(6)
    before, after = study(rng), study(rng, factor)
    found = repeat(before, after)
    assert not found.holds
    assert not any(cell.is_covered for cell in found.cells if cell.cell == "R")
    assert found.still == 0
    assert "| f, decode batch 1 | R: cuda_graph |" in as_markdown(Repetition(before, after, found))


def test_one_set_has_no_interval_and_does_not_pass() -> None:
    rng = np.random.default_rng(7)
    before = study(rng, num_sets=1)
    found = repeat(before, copy.deepcopy(before))
    assert (found.covered, found.still, found.holds) == (None, 1.0, False)
    assert "there is no interval" in as_markdown(Repetition(before, before, found))


def test_welch_agrees_with_a_worked_example() -> None:
    first, second = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9], [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0]
    from scipy import stats

    expected = stats.ttest_ind(second, first, equal_var=False).confidence_interval()
    assert welch(first, second)[1:] == pytest.approx((expected.low, expected.high))
    assert welch([1.0, 1.0], [2.0, 2.0]) == (1.0, 1.0, 1.0)
