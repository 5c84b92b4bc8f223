"""Steps that follow the host's speed are told from those that do not, and two runs are compared at equal host speed."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

from stages.analysis import rotations as turns
from stages.analysis.equal_host import equal_host
from stages.analysis.host_following import following, sentence
from stages.analysis.repeat import repeat
from stages.core.records.steps import Block, Cell, Conditions, Rotations, SequenceRun
from stages.views.repeating import Repetition, as_markdown

ELASTICITY = {"E": 1.0, "R": 0.0}
OFFSET = 0.006  # between identical workers
STEP_US, LOOP_US = 1000.0, 55.0


def rotations(
    rng: np.random.Generator, speed: float = 1.0, num_turns: int = 4, sets: int = 6, noise: float = 0.01, read: bool = True
) -> Rotations:
    """Two cells whose host takes `speed` times as long for its loop; a step follows it by `ELASTICITY`."""
    blocks, sequences = [], []
    for set_index in range(sets):
        offset = {cell: rng.normal(0, OFFSET) for cell in ELASTICITY}
        for turn in range(num_turns):
            for cell, elasticity in ELASTICITY.items():
                loop = speed * math.exp(rng.normal(0, 0.04))
                us = STEP_US * math.exp(elasticity * math.log(loop) + offset[cell] + rng.normal(0, noise))
                at = {"cell": cell, "mode": cell.lower(), "set_index": set_index, "rotation_index": turn}
                loops = [LOOP_US * loop] * 3 if read else []
                block = {"shape": "decode/1", "order_index": 0, "wall_us": [us], "device_us": [], "pipelined_us": us}
                blocks.append(Block(**at, **block, conditions=Conditions(host_loop_us=loops)))
                sequences.append(SequenceRun(**at, sequence_s=us / 1e3, num_steps=1, num_decode_steps=1, host_loop_us=loops))
    cells = [Cell(cell=cell, mode=cell.lower(), status="ok") for cell in ELASTICITY]
    sizes = {"num_sets": sets, "decode_context_tokens": 8, "sequence_steps": 1, "sequence_steps_in_trace": 1}
    return Rotations(factorial="f", cells=cells, blocks=blocks, sequences=sequences, device="cuda", **sizes)


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


@pytest.mark.parametrize("point", ["decode/1", "sequence"])
def test_elasticity_is_found_with_its_error(point: str) -> None:
    found = following(rotations(np.random.default_rng(1)), point)
    for cell, elasticity in ELASTICITY.items():
        assert abs(found[cell].elasticity - elasticity) < 3 * found[cell].standard_error
        assert 0.01 < found[cell].standard_error < 0.1
        assert found[cell].set_loop_us == pytest.approx([LOOP_US] * 6, rel=0.1)


def test_nothing_is_said_where_the_loop_was_not_read_or_not_often() -> None:
    rng = np.random.default_rng(1)
    assert following(rotations(rng, read=False), "decode/1") == {}
    assert following(rotations(rng, num_turns=3, sets=1), "decode/1") == {}
    assert sentence(rotations(rng, read=False), []) == []


def test_loop_that_never_changed_says_nothing_about_following_it() -> None:
    measured = rotations(np.random.default_rng(1))
    still = [block.model_copy(update={"conditions": Conditions(host_loop_us=[LOOP_US])}) for block in measured.blocks]
    found = measured.model_copy(update={"blocks": still})
    assert {(one.elasticity, one.standard_error) for one in following(found, "decode/1").values()} == {(0.0, 0.0)}


def test_sentence_names_who_follows_steepest_first_and_no_cell_with_an_objection() -> None:
    found = rotations(np.random.default_rng(1))
    (said,) = sentence(found, [])
    assert re.search(r"so many per cent longer: e (0\.9|1\.[01])\d, r 0\.0\d; it took 5\d to 5\d us here", said)
    assert sentence(found, ["E"]) == []  # the other does not follow


@pytest.mark.parametrize("noise", [0.01, 0.05])
def test_intervals_at_equal_host_speed_contain_0_at_their_rate_whatever_the_host_did(noise: float) -> None:
    rng = np.random.default_rng(2)
    raw, equal = [], []
    for _ in range(150):
        first, second = study(rotations(rng, noise=noise)), study(rotations(rng, speed=1.07, noise=noise))
        for cell in repeat(first, second).cells:
            raw.append(cell.is_covered)
            equal.append(cell.came_back)
    assert np.mean(raw) < 0.75
    assert np.mean(equal) >= 0.93


def test_step_that_moved_by_itself_does_not_come_back_at_equal_host_speed() -> None:
    rng = np.random.default_rng(3)
    first, second = study(rotations(rng)), study(rotations(rng, speed=1.07))
    at = second["attribution"]["f"]["1"]["set_us"]
    at["E"] = [1.05 * us for us in at["E"]]
    found = equal_host(first["attribution"]["f"], second["attribution"]["f"], "1", "E")
    assert found is not None
    assert found.low > 1.0
    assert found.ratio == pytest.approx(1.05, abs=0.01)


def test_page_says_what_was_measured_and_what_is_left_at_equal_host_speed() -> None:
    rng = np.random.default_rng(5)
    first, second = study(rotations(rng)), study(rotations(rng, speed=1.07))
    found = repeat(first, second)
    assert (found.covered, found.still, found.holds) == (1.0, 1.0, True)
    (move,) = found.medians
    assert move.move > 0.04
    assert abs(move.equal_move) < 0.01
    text = as_markdown(Repetition(first, second, found))
    assert "4 of 4 intervals of the difference contain 0 at equal host speed (100.0%, wanted 95%)." in text
    assert "As measured, 2 of 4 intervals contain 0 and 0 of 1 medians moved at most 1%: beside the same cells the host's loop" in text
    assert f"| {found.cells[0].equal.loop_ratio:.4f} |" in text  # type: ignore[union-attr]


def test_another_machines_loop_says_nothing_about_this_one() -> None:
    rng = np.random.default_rng(5)
    found = repeat(study(rotations(rng)), study(rotations(rng, speed=1.07), gpu_uuid="GPU-b"))
    assert [cell.equal for cell in found.cells] == [None] * 4
    assert not found.holds


@pytest.mark.parametrize("spoiled", [{"elasticity": None}, {"standard_error": "x"}, {"set_loop_us": [55.0]}, {"set_loop_us": [0.0] * 6}])
def test_study_that_does_not_know_its_host_is_judged_as_measured(spoiled: dict[str, Any]) -> None:
    rng = np.random.default_rng(5)
    first, second = study(rotations(rng)), study(rotations(rng))
    second["attribution"]["f"]["follows_host"]["1"]["E"] |= spoiled
    assert {(cell.point, cell.cell) for cell in repeat(first, second).cells if not cell.equal} == {("1", "E")}
