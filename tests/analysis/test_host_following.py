"""Steps that follow the host's speed are told from those that do not, and two runs are compared at equal host speed."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from stages.analysis import rotations as turns
from stages.analysis.equal_host import equal_host
from stages.analysis.host_following import by_point, following, sentence
from stages.analysis.repeat import repeat
from stages.core.records.steps import Block, Cell, Conditions, Rotations, SequenceRun
from stages.views.repeating import Repetition, as_markdown

ELASTICITY = {"E": 1.0, "R": 0.0}
OFFSET = 0.006  # between identical workers
NOISE = {"E": 0.04, "R": 0.005}  # of a turn, as on a shared host
READING_NOISE = 0.05  # of one of a block's
DRIFT = 0.02  # of the host between sets
STEP_US, LOOP_US, NUM_READINGS = 1000.0, 55.0, 18


def rotations(
    rng: np.random.Generator, speed: float = 1.0, num_turns: int = 4, sets: int = 6, num_readings: int = NUM_READINGS, device: str = "cuda"
) -> Rotations:
    """Two cells whose host takes `speed` times as long for its loop; a step follows it by `ELASTICITY`."""
    blocks, sequences = [], []
    for set_index in range(sets):
        offset, drift = {cell: rng.normal(0, OFFSET) for cell in ELASTICITY}, rng.normal(0, DRIFT)
        for turn in range(num_turns):
            for cell, elasticity in ELASTICITY.items():
                host = math.log(speed) + drift + rng.normal(0, 0.035)
                us = STEP_US * math.exp(elasticity * host + offset[cell] + rng.normal(0, NOISE[cell]))
                loops = [LOOP_US * math.exp(host + rng.normal(0, READING_NOISE)) for _ in range(num_readings)]
                at = {"cell": cell, "mode": cell.lower(), "set_index": set_index, "rotation_index": turn}
                block = {"shape": "decode/1", "order_index": 0, "wall_us": [us], "device_us": [], "pipelined_us": us}
                blocks.append(Block(**at, **block, conditions=Conditions(host_loop_us=loops)))
                sequences.append(SequenceRun(**at, sequence_s=us / 1e3, num_steps=1, num_decode_steps=1, host_loop_us=loops))
    cells = [Cell(cell=cell, mode=cell.lower(), status="ok") for cell in ELASTICITY]
    sizes = {"num_sets": sets, "decode_context_tokens": 8, "sequence_steps": 1, "sequence_steps_in_trace": 1}
    return Rotations(factorial="f", cells=cells, blocks=blocks, sequences=sequences, device=device, **sizes)


def study(found: Rotations, gpu_uuid: str = "GPU-a") -> dict[str, Any]:
    """What study.json has of it."""
    sides, follows = {}, {}
    for point, key in (("decode/1", "1"), ("sequence", "sequence")):
        values = turns.values_at(found, point)
        sides[key] = {"set_us": {cell: turns.set_means(values, cell) for cell in ELASTICITY}}
        follows[key] = {cell: one.model_dump() for cell, one in following(found, point).items()}
    started_at = str(found.blocks[0].wall_us)
    measured = {"started_at": started_at, "ended_at": "later", "hostname": "vm", "gpu_uuid": gpu_uuid}
    medians = {"1": {"wall_us": {"median": float(np.median([b.wall_us[0] for b in found.blocks if b.cell == "E"]))}, "factorial": "f"}}
    modes = {"e": {"claim": {"replay": "manual"}, "steady_state": {"decode": medians}}}
    factorial = {**sides, "cells": {"E": "e", "R": "r"}, "follows_host": follows, "measured": measured}
    return {"name": "s", "attribution": {"f": factorial}, "modes": modes}


def said_of(found: Rotations, *objections: str) -> list[str]:
    return sentence(by_point(found, objections)[turns.SEQUENCE], {cell: cell.lower() for cell in ELASTICITY})


@pytest.mark.parametrize("point", ["decode/1", "sequence"])
def test_elasticity_is_found_with_its_error(point: str) -> None:
    found = following(rotations(np.random.default_rng(1)), point)
    for cell, elasticity in ELASTICITY.items():
        assert abs(found[cell].elasticity - elasticity) < 3 * found[cell].standard_error
        assert 0.01 < found[cell].standard_error < 0.5
        assert 0.8 < found[cell].reliability < 1.0
        assert (found[cell].num_turns, found[cell].set_loop_us) == (24, pytest.approx([LOOP_US] * 6, rel=0.15))


def test_noise_of_the_readings_does_not_make_a_step_seem_to_follow_less() -> None:
    rng = np.random.default_rng(2)
    found = [following(rotations(rng, num_readings=4), "decode/1")["E"] for _ in range(40)]
    assert np.mean([one.reliability for one in found]) < 0.8
    assert np.mean([one.elasticity for one in found]) == pytest.approx(1.0, abs=0.1)


def test_nothing_is_said_without_a_gpu_or_readings_or_enough_turns() -> None:
    rng = np.random.default_rng(1)
    little = [
        rotations(rng, **less) for less in ({"device": "cpu"}, {"num_readings": 0}, {"num_readings": 1}, {"num_turns": 1}, {"sets": 1})
    ]
    assert [following(one, "decode/1") for one in little] == [{}] * 5
    assert [said_of(one) for one in little] == [[]] * 5


def test_loop_that_never_changed_says_nothing_about_following_it() -> None:
    measured = rotations(np.random.default_rng(1))
    still = [block.model_copy(update={"conditions": Conditions(host_loop_us=[LOOP_US] * 4)}) for block in measured.blocks]
    assert following(measured.model_copy(update={"blocks": still}), "decode/1") == {}


def test_sentence_names_who_follows_steepest_first_and_no_cell_with_an_objection() -> None:
    found = rotations(np.random.default_rng(1))
    (said,) = said_of(found)
    assert re.search(r"\(± standard error\): e (0\.[7-9]|1\.[0-3])\d ± 0\.\d\d, r -?0\.0\d ± 0\.0\d; it took 5\d to 5\d us here", said)
    assert said_of(found, "E") == []  # the other does not follow


def test_sentence_is_rarely_written_where_no_cell_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ELASTICITY, "E", 0.0)
    rng = np.random.default_rng(3)
    assert sum(bool(said_of(rotations(rng, sets=3))) for _ in range(100)) <= 8


@pytest.mark.parametrize("size", [{"sets": 3}, {}, {"num_turns": 6}])
def test_intervals_at_equal_host_speed_contain_0_at_their_rate_whatever_the_host_did(size: dict[str, int]) -> None:
    rng = np.random.default_rng(2)
    raw, equal = [], {cell: list[bool]() for cell in ELASTICITY}
    for _ in range(200):
        first, second = study(rotations(rng, **size)), study(rotations(rng, speed=1.07, **size))
        for cell in repeat(first, second).cells:
            raw += [cell.is_covered] if cell.cell == "E" else []
            equal[cell.cell].append(cell.came_back)
    assert np.mean(raw) < 0.75
    assert {cell: bool(np.mean(found) >= 0.93) for cell, found in equal.items()} == {"E": True, "R": True}


def test_step_that_moved_by_itself_does_not_come_back_at_equal_host_speed() -> None:
    rng = np.random.default_rng(3)
    first, second = study(rotations(rng)), study(rotations(rng, speed=1.07))
    at = second["attribution"]["f"]["1"]["set_us"]
    at["R"] = [1.03 * us for us in at["R"]]
    found = equal_host(first["attribution"]["f"], second["attribution"]["f"], "1", "R")
    assert found is not None
    assert found.low > 1.0
    assert found.ratio == pytest.approx(1.03, abs=0.01)


def test_slopes_that_contradict_each_other_are_less_certain_and_none_is_negative() -> None:
    def at(elasticity: float) -> dict[str, Any]:
        follows = {"elasticity": elasticity, "standard_error": 0.1, "set_loop_us": [55.0, 56.0]}
        return {"follows_host": {"1": {"E": follows}}, "1": {"set_us": {"E": [100.0, 101.0]}}}

    agree, differ, negative = (equal_host(at(first), at(second), "1", "E") for first, second in ((1.0, 1.0), (0.5, 1.5), (-0.5, -0.5)))
    assert agree
    assert differ
    assert negative
    assert (agree.elasticity, agree.standard_error) == (1.0, pytest.approx(0.1 / math.sqrt(2)))
    assert (differ.elasticity, differ.standard_error) == (1.0, pytest.approx(0.5))
    assert negative.elasticity == 0.0


def test_page_says_what_was_measured_and_what_is_left_at_equal_host_speed() -> None:
    rng = np.random.default_rng(8)
    first, second = study(rotations(rng)), study(rotations(rng, speed=1.07))
    found = repeat(first, second)
    assert found.covered == 1.0
    (move,) = found.medians
    assert move.move > 0.02
    assert move.equal_move is not None
    assert abs(move.equal_move) < 0.04
    text = as_markdown(Repetition(first, second, found))
    assert "4 of 4 intervals of the difference contain 0 at equal host speed (100.0%, wanted 95%)." in text
    num = sum(cell.is_covered for cell in found.cells)
    assert num < 4
    assert f"As measured, {num} of 4 intervals contain 0 and 0 of 1 medians moved at most 1%: beside the same cells the host's loop" in text
    assert f"| {found.cells[0].equal.loop_ratio:.4f} |" in text  # type: ignore[union-attr]


def test_another_machines_loop_says_nothing_about_this_one() -> None:
    rng = np.random.default_rng(5)
    found = repeat(study(rotations(rng)), study(rotations(rng, speed=1.07), gpu_uuid="GPU-b"))
    assert [cell.equal for cell in found.cells] == [None] * 4
    assert not found.holds


@pytest.mark.parametrize(
    "spoiled",
    [
        {"elasticity": None},
        {"elasticity": 1e308},
        {"standard_error": "x"},
        {"standard_error": 0.0},
        {"standard_error": 1e-200},
        {"standard_error": 1e200},
        {"standard_error": -0.1},
        {"set_loop_us": [55.0]},
        {"set_loop_us": []},
        {"set_loop_us": [0.0] * 6},
        {"set_loop_us": [1e-300] * 6},
    ],
)
def test_study_that_does_not_know_its_host_is_judged_as_measured(spoiled: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    first, second = study(rotations(rng)), study(rotations(rng))
    second["attribution"]["f"]["follows_host"]["1"]["E"] |= spoiled
    assert {(cell.point, cell.cell) for cell in repeat(first, second).cells if not cell.equal} == {("1", "E")}
