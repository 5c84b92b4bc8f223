"""Contrasts, twins and voids, from hand-computed rotations."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.analysis import rotations as turns
from stages.analysis.contrasts import Point, contrasts
from stages.core.records.path import ProfiledStep
from stages.core.records.steps import Block, Cell, Rotations, SequenceRun

SHAPE = "decode/8"
MODES = {"E": "eager", "C": "compile", "R": "cuda_graph", "CR": "compile_cuda_graph"}


def block(cell: str, wall_us: list[float], set_index: int = 0, rotation_index: int = 0, voided: str = "", shape: str = SHAPE) -> Block:
    return Block(
        cell=cell,
        mode=MODES[cell.split("#")[0]],
        shape=shape,
        set_index=set_index,
        rotation_index=rotation_index,
        order_index=0,
        wall_us=wall_us,
        device_us=[],
        pipelined_us=wall_us[0] if wall_us else 0.0,
        voided=voided,
    )


def rotations_of(blocks: list[Block], sequences: list[SequenceRun] | None = None, num_sets: int = 1) -> Rotations:
    cells = dict.fromkeys(block.cell for block in blocks)
    return Rotations(
        factorial="inductor_manual",
        cells=[Cell(cell=cell, mode=MODES[cell.split("#")[0]], status="ok") for cell in cells],
        num_sets=num_sets,
        decode_context_tokens=128,
        sequence_steps=10,
        sequence_steps_in_trace=10,
        blocks=blocks,
        sequences=sequences or [],
    )


def profiled(busy_us: float, attention: str = "flash") -> ProfiledStep:
    return ProfiledStep(
        phase="decode",
        size=8,
        num_calls=5,
        wall_us=1000.0,
        busy_us=busy_us,
        host_launch_us=0.0,
        host_python_us=0.0,
        host_wait_us=0.0,
        host_compile_us=0.0,
        kernels_per_call=1,
        graph_launches_per_call=0,
        graph_kernels_per_call=0,
        individual_kernels_per_call=1,
        unattributed_kernels_per_call=0,
        attention_kernels=[attention],
        top_kernels=[],
    )


def point(rotations: Rotations, objections: dict[str, str] | None = None, profiles: dict[str, ProfiledStep] | None = None) -> Point:
    return Point(SHAPE, turns.values_at(rotations, SHAPE), objections or {}, profiles or {})


FOUR = [block("E", [1000.0]), block("C", [600.0]), block("R", [300.0]), block("CR", [150.0])]


def test_contrasts_of_four_known_times() -> None:
    found = contrasts(point(rotations_of(FOUR), profiles={"E": profiled(250.0), "C": profiled(120.0)}))
    values = {
        name: getattr(found, name).value
        for name in ("total", "compiled_alone", "replay_alone", "kernels_given_replay", "replay_given_compiled", "interaction")
    }
    assert values == {
        "total": 850.0,
        "compiled_alone": 400.0,
        "replay_alone": 700.0,
        "kernels_given_replay": 150.0,
        "replay_given_compiled": 450.0,
        "interaction": 250.0,
    }
    assert found.closure_error_us == 0.0
    assert found.measured_speedup == pytest.approx(1000 / 150)
    assert found.product_of_speedups == pytest.approx(1000 / 600 * 1000 / 300)
    assert found.shapley_us == {"compiled": 275.0, "replay": 575.0}
    assert (found.busy_saved_us, found.idle_saved_us) == (130.0, 270.0)
    assert found.missing == []


def test_a_cell_with_an_objection_gets_no_gain_and_is_named() -> None:
    found = contrasts(point(rotations_of(FOUR), {"R": "cuda_graph: refuted: 0 replays"}))
    assert found.replay_alone is None
    assert found.interaction is None
    assert found.kernels_given_replay is None
    assert found.shapley_us == {}
    assert "R" not in found.cell_us
    assert found.total is not None
    assert found.missing == ["R: cuda_graph: refuted: 0 replays"]


def test_another_attention_operator_stops_attribution() -> None:
    found = contrasts(point(rotations_of(FOUR), profiles={"E": profiled(250.0), "C": profiled(120.0, "math")}))
    assert found.compiled_alone is None
    assert found.missing == ["C: attention kernels differ from those of E (math against flash)"]


@pytest.mark.parametrize("name", ["triton_per_fused_softmax", "aten::_scaled_dot_product_attention_math"])
def test_attention_made_of_products_is_another_operator_than_a_fused_one(name: str) -> None:
    found = contrasts(point(rotations_of(FOUR), profiles={"E": profiled(250.0), "C": profiled(120.0, name)}))
    assert found.missing == ["C: attention kernels differ from those of E (no fused one against flash)"]
    other = contrasts(point(rotations_of(FOUR), profiles={"E": profiled(250.0, name), "C": profiled(120.0)}))
    assert other.missing == ["C: attention kernels differ from those of E (flash against no fused one)"]
    assert contrasts(point(rotations_of(FOUR), profiles={"E": profiled(250.0, name), "C": profiled(120.0, name)})).missing == []


def test_a_cell_that_was_not_timed_is_missing() -> None:
    found = contrasts(point(rotations_of(FOUR[:2])))
    assert found.total is None
    assert found.compiled_alone is not None
    assert found.missing == ["CR: not timed", "R: not timed"]


def test_a_voided_block_leaves_its_rotation_out_of_that_cells_contrasts_only() -> None:
    second = [
        block("E", [2000.0], rotation_index=1),
        block("C", [600.0], rotation_index=1, voided="a compile"),
        block("R", [300.0], rotation_index=1),
    ]
    rotations = rotations_of([*FOUR, *second])
    found = contrasts(point(rotations))
    assert found.compiled_alone is not None
    assert found.compiled_alone.value == 400.0
    assert found.replay_alone is not None
    assert found.replay_alone.value == (700 + 1700) / 2
    assert found.closure_error_us == pytest.approx(400 + 1200 - 250 - 850)
    assert turns.voided(rotations) == [f"C at {SHAPE}: a compile"]


def test_what_does_not_count_is_told_once_a_cell_and_shape() -> None:
    blocks = [block("R", [600.0], rotation_index=index, voided=f"{index} replays in 8 steps") for index in range(5)]
    rotations = rotations_of([*blocks, block("E", [600.0])])
    assert turns.voided(rotations) == [f"R at {SHAPE}: 0 replays in 8 steps (the first of 5)"]


def test_a_rotation_is_the_mean_of_block_medians() -> None:
    rotations = rotations_of([block("E", [1.0, 2.0, 90.0]), block("E", [4.0])])
    assert turns.values_at(rotations, SHAPE) == {(0, 0): {"E": 3.0}}


def test_cells_of_different_sets_are_never_compared() -> None:
    rotations = rotations_of([block("E", [1000.0]), block("C", [500.0], set_index=1)], num_sets=2)
    assert contrasts(point(rotations)).compiled_alone is None


def test_the_unit_of_repetition_is_the_set() -> None:
    blocks = [
        block(cell, [value], set_index, rotation)
        for set_index, (eager, compiled) in enumerate([(1000.0, 900.0), (1000.0, 700.0)])
        for rotation in range(5)
        for cell, value in (("E", eager), ("C", compiled))
    ]
    found = turns.difference(turns.values_at(rotations_of(blocks, num_sets=2), SHAPE), {"E": 1, "C": -1})
    assert found is not None
    assert (found.value, found.num_sets) == (200.0, 2)
    assert found.low == pytest.approx(200 - 12.706204736174694 * 100)


def test_sequence_is_a_point_in_us() -> None:
    runs = [
        SequenceRun(cell=cell, mode=MODES[cell], set_index=0, rotation_index=0, sequence_s=value, num_steps=10, num_decode_steps=8)
        for cell, value in (("E", 2.0), ("C", 0.5))
    ]
    values = turns.values_at(rotations_of(FOUR, runs), turns.SEQUENCE)
    assert values == {(0, 0): {"E": 2e6, "C": 5e5}}


def test_weighted_point_mixes_shapes_inside_rotations() -> None:
    blocks = [block("E", [100.0], shape="decode/1"), block("E", [300.0], shape="decode/8"), block("C", [50.0], shape="decode/1")]
    assert turns.weighted(rotations_of(blocks), {"decode/1": 0.75, "decode/8": 0.25}) == {(0, 0): {"E": 150.0}}


def test_equal_twins_are_not_called_different() -> None:
    blocks = [block(cell, [value], index) for index, value in enumerate((100.0, 101.0, 99.0)) for cell in ("E", "E#2")]
    found = turns.twins(rotations_of(blocks, num_sets=3))
    assert [(pair.mode, pair.ratio, pair.different) for pair in found] == [("eager", 1.0, False)]


def test_twins_with_a_constant_offset_are_called_different_and_widen_the_margin() -> None:
    blocks = [block(cell, [value], index) for index in range(3) for cell, value in (("E", 106.0 + index / 10), ("E#2", 100.0 + index / 10))]
    rotations = rotations_of(blocks, num_sets=3)
    assert [pair.different for pair in turns.twins(rotations)] == [True]
    assert turns.margin_at(rotations, turns.values_at(rotations, SHAPE)) == pytest.approx(math.log(1.06), rel=0.01)


@given(st.lists(st.tuples(*[st.floats(1, 1e5)] * 4), min_size=1, max_size=6))
def test_contrasts_close_when_every_cell_is_in_every_rotation(times: list[tuple[float, ...]]) -> None:
    blocks = [block(cell, [value], index // 2, index) for index, row in enumerate(times) for cell, value in zip(MODES, row, strict=True)]
    found = contrasts(point(rotations_of(blocks, num_sets=(len(times) + 1) // 2)))
    assert found.total is not None
    scale = max(value for row in times for value in row)
    assert found.closure_error_us == pytest.approx(0, abs=1e-9 * scale)
    assert sum(found.shapley_us.values()) == pytest.approx(found.total.value, abs=1e-9 * scale)
