"""A study measured twice: equal runs pass at the stated rate, a run that moved does not."""

from __future__ import annotations

import copy
import math
from statistics import median
from typing import Any

import numpy as np
import pytest

from stages.analysis.repeat import CellShift, Repeat, repeat
from stages.analysis.statistics import welch
from stages.core.errors import UserError
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
    reaches = sorted((cell.high / cell.low) ** 0.5 - 1 for cell in found.cells)
    assert sorted(found.reaches) == pytest.approx(reaches)
    assert f"In the median cell it reaches {median(reaches):.1%} to either side, in the widest {reaches[-1]:.1%}" in text


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
    before, after = study(rng, num_sets=1), study(rng, num_sets=1)
    found = repeat(before, after)
    assert (found.covered, found.holds) == (None, False)
    assert "there is no interval" in as_markdown(Repetition(before, before, found))


def test_cell_without_an_interval_beside_others_did_not_come_back() -> None:
    rng = np.random.default_rng(4)
    before, after = study(rng), study(rng)
    for side, us in ((before, 400.0), (after, 800.0)):
        side["attribution"]["f"]["1"]["set_us"]["R"] = [us]
    found = repeat(before, after)
    assert (found.covered, found.lost_cells) == (pytest.approx(23 / 24), ["f, R at 1"])


def test_reach_of_more_than_all_is_a_factor() -> None:
    wide = CellShift("f", "1", "E", "eager", 1.0, 0.1, 10.0)
    text = as_markdown(Repetition({"name": "s"}, {"name": "s"}, Repeat([wide], [])))
    assert "In the median cell it reaches a factor of 10.0, in the widest a factor of 10.0:" in text


def test_study_in_which_nothing_replays_comes_back_by_its_cells_alone() -> None:
    rng = np.random.default_rng(4)
    before, after = study(rng), study(rng)
    for side in (before, after):
        del side["modes"]["cuda_graph"]
    found = repeat(before, after)
    assert (found.covered, found.still, found.holds) == (1.0, None, True)
    assert "No mode that replays was timed twice." in as_markdown(Repetition(before, after, found))


@pytest.mark.parametrize("lacking", [0, 1])
def test_what_only_one_run_has_did_not_come_back(lacking: int) -> None:
    rng = np.random.default_rng(4)
    sides = study(rng), study(rng)
    for point in ("1", "2"):
        del sides[lacking]["attribution"]["f"][point]["set_us"]["R"]
        del sides[lacking]["modes"]["cuda_graph"]["steady_state"]["decode"][point]
    found = repeat(*sides)
    assert (found.covered, found.still, found.holds) == (pytest.approx(22 / 24), pytest.approx(10 / 12), False)
    text = as_markdown(Repetition(*sides, found))
    assert "22 of 24 intervals of the difference contain 0 (91.7%, wanted 95%: not reached). In one run only: f, R at 1; f, R at 2." in text
    assert (
        "10 of 12 medians of replaying modes moved at most 1% (83.3%, wanted 90%: not reached). In one run only: cuda_graph at decode/1;"
        in text
    )


def test_cells_that_the_heat_of_one_run_left_out_are_no_loss() -> None:
    rng = np.random.default_rng(4)
    before, after = study(rng), study(rng)
    for point in map(str, range(1, 13)):
        del after["attribution"]["f"][point]["set_us"]["R"]
    after["attribution"]["f"]["heat"] = {"eager": 1.0, "cuda_graph": 0.2}
    assert (repeat(before, after).lost_cells, len(repeat(before, after).cells)) == ([], 12)


def test_means_over_batch_sizes_are_no_cells_of_their_own() -> None:
    rng = np.random.default_rng(4)
    before, after = study(rng), study(rng)
    for point in ("plan_weighted", "load_weighted"):
        before["attribution"]["f"][point] = before["attribution"]["f"]["1"]
    after["attribution"]["f"]["plan_weighted"] = after["attribution"]["f"]["1"]
    found = repeat(before, after)
    assert (len(found.cells), found.lost_cells) == (24, [])


def test_other_clocks_stand_beside_the_one_that_is_judged() -> None:
    rng = np.random.default_rng(4)
    before, after = study(rng), study(rng)
    for side, pipelined_us in ((before, 100.0), (after, 100.5)):
        for times in side["modes"]["cuda_graph"]["steady_state"]["decode"].values():
            times["pipelined_us"], times["device_us"] = {"median": pipelined_us}, None
        side["modes"]["cuda_graph"]["steady_state"]["decode"]["1"]["wall_us"] = {"median": 2 * pipelined_us**2}
    found = repeat(before, after)
    assert (len(found.lost_medians), found.medians[0].move, found.medians[0].is_still) == (0, pytest.approx(0.010025), False)
    text = as_markdown(Repetition(before, after, found))
    assert "The same medians on the other clocks, not judged: in bursts 12 of 12." in text
    (row,) = [line for line in text.splitlines() if line.startswith("| cuda_graph | decode batch 1 |")]
    assert row.endswith("| +1.00% | – | – | +0.50% |")


def measured(found: dict[str, Any], started_at: str, gpu_uuid: str) -> dict[str, Any]:
    """The same with when and where its factorial was measured, also at the times that come from it."""
    found["attribution"]["f"]["measured"] = {"started_at": started_at, "ended_at": "later", "hostname": "vm", "gpu_uuid": gpu_uuid}
    for times in found["modes"]["cuda_graph"]["steady_state"]["decode"].values():
        times["factorial"] = "f"
    return found


def test_one_record_in_both_studies_is_no_repeat() -> None:
    rng = np.random.default_rng(4)
    for before in (study(rng), measured(study(rng), "08:00", "GPU-a")):
        with pytest.raises(UserError, match=r"B: must be A measured again; got the same records \(f\)"):
            repeat(before, copy.deepcopy(before))
        after = copy.deepcopy(before)
        for side in (before, after):
            side["attribution"]["g"] = study(rng)["attribution"]["f"]
        found = repeat(before, after)
        assert (found.once, {cell.factorial for cell in found.cells}) == (["f"], {"g"})
        assert "f: measured once, both studies hold the same record; not compared." in as_markdown(Repetition(before, after, found))


@pytest.mark.parametrize("lacking", [0, 1])
def test_factorial_that_only_one_run_has_did_not_come_back(lacking: int) -> None:
    rng = np.random.default_rng(4)
    sides = study(rng), study(rng)
    sides[1 - lacking]["attribution"]["g"] = study(rng)["attribution"]["f"]
    found = repeat(*sides)
    assert (len(found.cells), len(found.lost_cells), found.covered, found.holds) == (24, 24, 0.5, False)


@pytest.mark.parametrize("means", [[0.0, 1.0], [-1.0, 1.0], ["fast", 1.0], [None, 1.0], None, 3.0, [float("inf"), 1.0]])
def test_step_times_that_are_none_are_the_users_to_fix(means: Any) -> None:
    rng = np.random.default_rng(4)
    before, after = study(rng), study(rng)
    after["attribution"]["f"]["3"]["set_us"]["R"] = means
    with pytest.raises(UserError, match="set_us of R at 3: must be positive numbers of us"):
        repeat(before, after)


def test_times_of_a_release_that_did_not_say_their_factorial_are_held_against_those_that_do() -> None:
    rng = np.random.default_rng(4)
    before, after = study(rng), study(rng)
    for times in after["modes"]["cuda_graph"]["steady_state"]["decode"].values():
        times["factorial"] = "f"
    found = repeat(before, after)
    assert (len(found.medians), found.lost_medians) == (12, [])


@pytest.mark.parametrize(
    ("gpu_uuid", "said"),
    [("GPU-a", "f: both times on GPU-a of vm, A from 08:00, B"), ("GPU-b", "f: A on GPU-a of vm, B on GPU-b of vm: not the same machine;")],
)
def test_machine_of_both_runs_is_said(gpu_uuid: str, said: str) -> None:
    rng = np.random.default_rng(4)
    before, after = measured(study(rng), "08:00", "GPU-a"), measured(study(rng), "09:00", gpu_uuid)
    found = repeat(before, after)
    assert (len(found.cells), len(found.medians), found.holds) == (24, 12, True)
    assert said in as_markdown(Repetition(before, after, found))


def test_medians_of_different_factorials_are_not_held_against_each_other() -> None:
    rng = np.random.default_rng(4)
    before, after = measured(study(rng), "08:00", "GPU-a"), measured(study(rng), "09:00", "GPU-a")
    after["modes"]["cuda_graph"]["steady_state"]["decode"]["1"]["factorial"] = "other"
    found = repeat(before, after)
    assert (len(found.medians), found.lost_medians) == (11, ["cuda_graph at decode/1 (f)", "cuda_graph at decode/1 (other)"])


def test_welch_agrees_with_a_worked_example() -> None:
    first, second = [27.5, 21.0, 19.0, 23.6, 17.0, 17.9], [27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0]
    from scipy import stats

    expected = stats.ttest_ind(second, first, equal_var=False).confidence_interval()
    assert welch(first, second)[1:] == pytest.approx((expected.low, expected.high))
    assert welch([1.0, 1.0], [2.0, 2.0]) == (1.0, 1.0, 1.0)
