"""Who goes on after a heat, and what is said of the others."""

from __future__ import annotations

from stages.core.records.steps import Cell, SequenceRun
from stages.workers.heat import after_heat, ranked
from stages.workers.rotation import Set


def heat(**seconds: list[float]) -> Set:
    runs = [
        SequenceRun(cell=cell, mode=cell, set_index=0, rotation_index=index, sequence_s=at, num_steps=1, num_decode_steps=1)
        for cell, times in seconds.items()
        for index, at in enumerate(times)
    ]
    return Set(blocks=[], sequences=runs, failed={})


def cells(*names: str) -> list[Cell]:
    return [Cell(cell=name, mode=name, status="ok") for name in names]


def test_cells_are_ranked_by_the_mean_of_their_passes() -> None:
    assert list(ranked(heat(a=[3.0, 3.0], b=[1.0, 2.0], c=[0.5, 2.0]))) == ["c", "b", "a"]


def test_pass_in_which_something_compiled_and_a_broken_cell_do_not_count() -> None:
    found = heat(a=[1.0, 9.0], b=[0.1, 0.1])
    found.sequences[1] = found.sequences[1].model_copy(update={"voided": "the compiler ran"})
    found.failed["b"] = "CUDA error"
    assert ranked(found) == {"a": 1.0}


def test_those_behind_are_skipped_with_their_place_and_a_twin_follows_its_cell() -> None:
    found = after_heat(cells("a", "b", "c", "d", "c#2", "a#2"), {"b": 1.0, "a": 2.0, "c": 3.0}, {"d": "CUDA error"}, 2)
    fates = {cell.cell: (cell.status, cell.reason) for cell in found}
    assert fates["a"] == fates["b"] == fates["a#2"] == ("ok", "")
    assert fates["c"] == fates["c#2"] == ("skipped", "number 3 of the heat: 3 s for the sequence, 2 s would have been enough")
    assert fates["d"] == ("failed", "CUDA error")


def test_cell_that_could_not_run_keeps_its_reason() -> None:
    gone = [Cell(cell="a", mode="a", status="unavailable", reason="needs CUDA")]
    assert after_heat(gone, {"b": 1.0, "c": 2.0}, {}, 2) == gone
