"""A block on a GPU whose host becomes slow meanwhile is measured again, a few times; nothing of it is lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stages.core.records.steps import Conditions
from stages.workers.process import WorkerFailed
from stages.workers.rotation import MOST_ATTEMPTS, Rotation

FAST, SLOW = [30.0, 31.0], [30.0, 58.0]


class Scripted:
    """A worker whose blocks have these readings of the host's loop; the wall time tells which attempt it was."""

    def __init__(self, *readings: list[float], voided: str = "") -> None:
        self.readings, self.num_asked, self.voided = list(readings), 0, voided

    def ask(self, _: str, **__: Any) -> dict[str, Any]:
        self.num_asked += 1
        if not self.readings:
            raise WorkerFailed("it died", [])
        shares = {"cpu_share": 1.0, "queue_share": 0.0, "host_loop_us": self.readings.pop(0)}
        return {
            "wall_us": [float(self.num_asked)],
            "device_us": [],
            "pipelined_us": 1.0,
            "first_call_us": 9.0,
            "voided": self.voided,
            **shares,
        }


def rotation(worker: Scripted, device: str = "cuda") -> Rotation:
    study = SimpleNamespace(plan=SimpleNamespace(context_tokens=8), environment={"device": device})
    steps = SimpleNamespace(calls_per_block=1, pipelined_calls=1)
    settings = {"E": SimpleNamespace(measure=SimpleNamespace(steady_state=steps), mode={"name": "eager"})}
    watch = SimpleNamespace(read=lambda **shares: Conditions(**shares))
    return Rotation(study, settings, 0, ({"E": worker}, {}), watch)  # type: ignore[arg-type]


def measured(found: Rotation, rotation_index: int = 0) -> tuple[list[float], list[float]]:
    """What counts and what was measured again: wall times."""
    found._block("E", "decode/1", rotation_index, 0)
    return [block.wall_us[0] for block in found.blocks], [block.wall_us[0] for block in found.slowed]


def test_block_on_a_fast_host_is_measured_once() -> None:
    assert measured(rotation(Scripted(FAST))) == ([1.0], [])


def test_block_that_a_slow_host_spoiled_is_measured_again_and_kept_aside() -> None:
    found = rotation(Scripted(SLOW, FAST))
    assert measured(found) == ([2.0], [1.0])
    assert [block.first_call_us for block in (*found.slowed, *found.blocks)] == [9.0, None]  # the second follows its own cell


def test_block_inside_which_something_compiled_is_not_measured_until_nothing_does() -> None:
    found = rotation(Scripted(SLOW, FAST, voided="the compiler ran for 1 s inside"))
    assert measured(found) == ([1.0], [])
    assert found.blocks[0].voided


def test_block_counts_whose_host_was_slow_for_a_quarter_of_its_readings_at_most() -> None:
    most, more = [30.0, 58.0, 31.0, 30.0], [30.0, 58.0, 58.0, 31.0, 30.0, 30.0]
    assert measured(rotation(Scripted(most))) == ([1.0], [])
    assert measured(rotation(Scripted(more, FAST))) == ([2.0], [1.0])


def test_last_attempt_counts_as_it_is() -> None:
    assert MOST_ATTEMPTS == 3
    assert measured(rotation(Scripted(SLOW, SLOW, SLOW, FAST))) == ([3.0], [1.0, 2.0])


def test_host_that_is_slow_for_good_is_what_is_usual() -> None:
    found = rotation(Scripted(FAST, *[[58.0, 58.0]] * 60))
    for index in range(20):
        measured(found, index)
    before = len(found.slowed)
    assert measured(found, 20)[1][before:] == []  # nine tenths of the readings are slow by now


def test_what_is_usual_is_what_the_cell_itself_read_lately() -> None:
    """Another cell's processor, or the same one's an hour ago, may have been faster."""
    found = rotation(Scripted(*[[58.0] * 10] * 12))
    found.workers["C"], found.settings["C"] = Scripted(*[FAST] * 10), found.settings["E"]  # type: ignore[assignment, index]
    for index in range(10):
        found._block("C", "decode/1", index, 0)
        found._block("E", "decode/1", index, 1)
    assert found.slowed == []


def test_on_a_cpu_no_block_is_measured_again() -> None:
    assert measured(rotation(Scripted(SLOW, FAST), device="cpu")) == ([1.0], [])


def test_worker_that_dies_at_the_second_attempt_leaves_the_first() -> None:
    found = rotation(Scripted(SLOW))
    with pytest.raises(WorkerFailed):
        measured(found)
    assert ([block.wall_us for block in found.slowed], found.blocks) == ([[1.0]], [])
