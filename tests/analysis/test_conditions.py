"""Throttled and contended blocks are left out, and can never empty the result."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from stages.analysis import conditions, rotations
from stages.core.records.steps import Block, Cell, Conditions, Rotations, SequenceRun, Settling

SLOW_CLOCK = Conditions(sm_clock_mhz=900, max_sm_clock_mhz=1980)
GOOD = Conditions(sm_clock_mhz=1980, max_sm_clock_mhz=1980, event_us={"power_cap": 100.0}, cpu_share=1.0, queue_share=0.0)


def block(cell: str, turn: int, us: float, found: Conditions | None, **changes: Any) -> Block:
    at = {"set_index": 0, "rotation_index": turn, "order_index": 0} | changes
    defaults: dict[str, Any] = {"shape": "decode/1", "wall_us": [us], "device_us": [], "pipelined_us": us, "conditions": found}
    return Block(cell=cell, mode=cell, **{**defaults, **at})


def timed(blocks: list[Block], device: str = "cuda", settling: list[Settling] | None = None) -> Rotations:
    cells = [Cell(cell=cell, mode=cell, status="ok") for cell in sorted({one.cell for one in blocks})]
    sizes = {"num_sets": 1, "decode_context_tokens": 8, "sequence_steps": 0, "sequence_steps_in_trace": 0}
    return Rotations(factorial="f", cells=cells, blocks=blocks, sequences=[], device=device, settling=settling or [], **sizes)


@pytest.mark.parametrize(
    ("found", "device", "kind"),
    [
        (SLOW_CLOCK, "cuda", "throttled: SM clock 900 of 1980 MHz"),
        (Conditions(event_us={"hardware_thermal": 12.0}), "cuda", "throttled: hardware_thermal for 12 us"),
        (Conditions(other_bytes=3 << 30, other_growth_bytes=1 << 30), "cuda", "contended: others took 1,024 MiB"),
        (Conditions(queue_share=0.2), "cuda", "contended: waited for a processor for 20%"),
        (Conditions(cpu_share=0.5), "cpu", "contended: had a processor for 50%"),
    ],
)
def test_condition_that_speaks_against_a_block_is_named_with_its_number(found: Conditions, device: str, kind: str) -> None:
    (mark,) = conditions.marks(block("E", 0, 1.0, found), device)
    assert mark.startswith(kind)


def test_power_cap_at_full_clock_waiting_on_a_gpu_and_other_memory_of_long_standing_are_no_marks() -> None:
    assert conditions.marks(block("E", 0, 1.0, GOOD), "cuda") == []
    assert conditions.marks(block("E", 0, 1.0, Conditions(cpu_share=0.5)), "cuda") == []
    assert conditions.marks(block("E", 0, 1.0, Conditions(other_bytes=9 << 30, other_growth_bytes=0)), "cuda") == []
    assert conditions.marks(block("E", 0, 1.0, None), "cuda") == []


def test_throttled_block_is_left_out_of_the_times_and_counted() -> None:
    blocks = [block("E", turn, 100.0, GOOD) for turn in range(3)] + [block("E", 3, 900.0, SLOW_CLOCK)]
    found = timed(blocks)
    assert rotations.shape_times(found, "E", "decode/1").wall_us.ecdf == [100.0] * 3  # type: ignore[union-attr]
    assert conditions.sentences(found) == ["blocks left out: 1 throttled of 4"]


def test_voided_blocks_are_none_of_those_that_conditions_leave_out() -> None:
    voided = [block("E", turn, 100.0, GOOD, voided="the compiler ran") for turn in range(2)]
    found = timed([*voided, block("E", 2, 100.0, SLOW_CLOCK), block("E", 3, 100.0, SLOW_CLOCK)])
    assert len(rotations.counted(found, "decode/1")) == 2
    assert conditions.sentences(found) == ["blocks kept although marked, because too few others are left: decode/1 (2 throttled of 2)"]


def test_device_that_throttles_for_good_keeps_every_block_and_says_so() -> None:
    found = timed([block(cell, turn, 100.0, SLOW_CLOCK) for cell in ("E", "C") for turn in range(4)])
    assert len(rotations.counted(found, "decode/1")) == 8
    assert conditions.sentences(found) == ["blocks kept although marked, because too few others are left: decode/1 (8 throttled of 8)"]


def test_one_cell_that_would_lose_most_of_its_blocks_keeps_all_of_the_shape() -> None:
    eager = [block("E", turn, 100.0, SLOW_CLOCK if turn < 3 else GOOD) for turn in range(4)]
    found = timed(eager + [block("C", turn, 50.0, SLOW_CLOCK if turn < 1 else GOOD) for turn in range(4)])
    assert len(rotations.counted(found, "decode/1")) == 8


def test_marks_that_fall_on_one_cell_each_keep_all_of_the_shape() -> None:
    """Each cell would keep over half of its blocks, and no rotation both of them."""
    bad = {"E": {0, 1, 4}, "C": {2, 3, 5}}
    found = timed([block(cell, turn, 100.0, SLOW_CLOCK if turn in bad[cell] else GOOD) for cell in "EC" for turn in range(7)])
    assert len(rotations.counted(found, "decode/1")) == 14


def test_power_cap_that_held_the_clock_down_is_said_and_marks_nothing() -> None:
    """As in the prefill of a 1B model on an H200: calls of 7.3 ms at first, 7.9 in a burst."""
    capped = Conditions(sm_clock_mhz=1660, max_sm_clock_mhz=1980, event_us={"power_cap": 100.0})
    blocks = [block("E", turn, 100.0, capped) for turn in range(4)]
    (said,) = conditions.sentences(timed(blocks))
    assert said.startswith("the power cap held the clock down in decode/1 (SM clock 1660 to 1660 of 1980 MHz): calls take longer")
    assert len(rotations.counted(timed(blocks), "decode/1")) == 4
    assert conditions.sentences(timed([block("E", turn, 100.0, GOOD) for turn in range(4)])) == []  # capped at full clock


def test_set_that_would_be_lost_whole_keeps_all_of_the_shape() -> None:
    """Else the only interval would rest on one set of processes."""
    slow = [block(cell, turn, 100.0, SLOW_CLOCK) for cell in "EC" for turn in range(4)]
    good = [block(cell, turn, 100.0, GOOD, set_index=1) for cell in "EC" for turn in range(4)]
    assert len(rotations.counted(timed(slow + good), "decode/1")) == 16


def host(*loop_us: float) -> Conditions:
    return Conditions(host_loop_us=list(loop_us))


def test_speeds_of_the_host_are_said_with_how_many_blocks_were_measured_again() -> None:
    blocks = [block("E", turn, 100.0, host(30.0, 31.0)) for turn in range(9)] + [block("E", 9, 180.0, host(30.0, 61.0))]
    (speeds,) = conditions.sentences(timed(blocks))
    assert speeds == (
        "the host's processor took 30 to 61 us for the same loop of Python beside the timed steps,"
        " in 1 of 20 readings over 1.35 times its usual 30 us: steps that wait for the host take that much longer then"
    )
    found = timed(blocks[:9]).model_copy(update={"slowed": blocks[9:]})
    assert rotations.shape_times(found, "E", "decode/1").wall_us.ecdf == [100.0] * 9  # type: ignore[union-attr]
    assert "its usual 30 us; 1 blocks were measured again for it:" in conditions.sentences(found)[0]


def test_readings_inside_a_pass_over_the_sequence_count_too() -> None:
    at = {"cell": "E", "mode": "eager", "set_index": 0, "rotation_index": 0}
    run = SequenceRun(**at, sequence_s=1.0, num_steps=9, num_decode_steps=9, host_loop_us=[30.0] * 9 + [61.0])  # type: ignore[arg-type]
    found = timed([block("E", 0, 100.0, host(30.0, 31.0))]).model_copy(update={"sequences": [run]})
    assert "in 1 of 12 readings over 1.35 times its usual 30 us" in conditions.sentences(found)[0]


def test_calls_that_were_made_again_are_counted_in_blocks_and_passes() -> None:
    at = {"cell": "E", "mode": "eager", "set_index": 0, "rotation_index": 0}
    run = SequenceRun(**at, sequence_s=1.0, num_steps=9, num_decode_steps=9, repeated_s=[0.2, 0.3])  # type: ignore[arg-type]
    again = block("E", 0, 100.0, host(30.0, 61.0)).model_copy(update={"repeated_us": {"wall_us": [180.0], "pipelined_us": [170.0]}})
    found = timed([again]).model_copy(update={"sequences": [run]})
    assert "its usual 30 us; 4 calls or bursts were made again for it:" in conditions.sentences(found)[0]


def test_usual_speeds_and_records_from_before_they_were_read_say_nothing() -> None:
    assert conditions.sentences(timed([block("E", 0, 100.0, host(30.0, 33.0)), block("E", 1, 100.0, None)])) == []
    assert conditions.sentences(timed([block("E", 0, 100.0, GOOD)])) == []


@pytest.mark.parametrize("reading", [0.0, -1.0, float("inf"), float("nan")])
def test_reading_that_is_no_time_is_refused(reading: float) -> None:
    with pytest.raises(ValidationError, match="host_loop_us"):
        host(reading)


@given(st.lists(st.tuples(st.sampled_from("EC"), st.booleans()), min_size=1, max_size=30))
def test_the_rule_never_takes_more_than_half_of_a_cell(drawn: list[tuple[str, bool]]) -> None:
    blocks = [block(cell, turn, 1.0, SLOW_CLOCK if bad else GOOD) for turn, (cell, bad) in enumerate(drawn)]
    left = conditions.kept(blocks, "cuda")
    for cell in {cell for cell, _ in drawn}:
        assert 2 * sum(one.cell == cell for one in left) >= sum(one.cell == cell for one in blocks)


def test_cell_that_never_settled_is_named() -> None:
    one = Settling(cell="C", shape="decode/8", set_index=2, num_calls=40, settled=False, reason="the compiler ran for 0.1 s")
    (said,) = conditions.sentences(timed([block("E", 0, 1.0, GOOD)], settling=[one]))
    assert said == "not_settled: C at decode/8; decode/8: the compiler ran for 0.1 s"


def test_switch_costs_what_the_first_call_takes_more_than_a_timed_one() -> None:
    blocks = [block("E", turn, 100.0, None, first_call_us=100.0 + extra) for turn, extra in enumerate((30.0, 40.0, 900.0))]
    assert conditions.switch_costs_us(timed([*blocks, block("R", 0, 10.0, None)])) == {"E": 40.0}
    voided = block("E", 3, 100.0, None, first_call_us=5e6, voided="the compiler ran")
    assert conditions.switch_costs_us(timed([voided, voided, *blocks])) == {"E": 40.0}
