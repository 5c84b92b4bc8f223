"""steady_state: balanced rotations, cells that cannot run, and a cell that breaks while the others go on."""

from __future__ import annotations

import copy
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stages import steady_state
from stages.core.partial import Partial
from stages.core.records.base import Host, read
from stages.core.records.steps import SteadyStateRecord
from stages.core.typed_yaml import load_yaml
from stages.steady_state import cells_of
from stages.workers.rotation import Set, balanced_order
from tests.workers.small_study import SmallStudy, write_study

CELLS = ["E", "C", "R", "CR", "dynamo", "E#2", "CR#2"]


@given(st.lists(st.sampled_from(CELLS), unique=True, min_size=1, max_size=len(CELLS)), st.integers(0, 3))
def test_every_cell_stands_equally_often_in_every_place(cells: list[str], cycles_before: int) -> None:
    cycle = 2 * len(cells)
    orders = [balanced_order(cells, cycles_before * cycle + index) for index in range(cycle)]
    assert all(sorted(order) == sorted(cells) for order in orders)
    for place in range(len(cells)):
        assert Counter(order[place] for order in orders) == dict.fromkeys(cells, 2)


@given(st.lists(st.sampled_from(CELLS), unique=True, min_size=1), st.integers(0, 50))
def test_every_second_rotation_is_the_one_before_backwards(cells: list[str], pair: int) -> None:
    assert balanced_order(cells, 2 * pair + 1) == balanced_order(cells, 2 * pair)[::-1]


def test_first_rotation_is_the_written_order_and_nothing_has_no_order() -> None:
    assert balanced_order(["E", "C", "R"], 0) == ["E", "C", "R"]
    assert balanced_order([], 3) == []


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    modes = ("eager", "dynamo", "cuda_graph")
    return write_study(tmp_path_factory.mktemp("small"), *modes, factorials=("inductor_manual",))


def document(small: SmallStudy, twins: bool) -> dict[str, Any]:
    """The composed factorial."""
    found: dict[str, Any] = load_yaml(small.folder / "config" / "factorial" / "inductor_manual.yaml")
    for settings in filter(None, found["cells"].values()):
        settings["measure"]["steady_state"]["twins"] = twins
    return found


def test_cells_that_cannot_run_say_why_and_have_no_settings(small: SmallStudy) -> None:
    cells, runnable = cells_of(document(small, twins=False))
    assert {cell.cell: cell.status for cell in cells if "#" not in cell.cell} == {
        "E": "ok",
        "C": "skipped",
        "R": "unavailable",
        "CR": "skipped",
        "dynamo": "ok",
    }
    reasons = {cell.cell: cell.reason for cell in cells}
    assert reasons["C"] == "params.yaml does not list this mode"
    assert "CUDA" in reasons["R"]
    assert list(runnable) == ["E", "dynamo"]


def test_twins_are_further_cells_of_the_same_mode(small: SmallStudy) -> None:
    cells, runnable = cells_of(document(small, twins=True))
    assert list(runnable) == ["E", "dynamo", "E#2"]
    assert {cell.cell: cell.mode for cell in cells}["E#2"] == "eager"
    assert runnable["E#2"].mode == runnable["E"].mode


def test_cell_that_breaks_is_failed_and_the_others_are_measured(small: SmallStudy) -> None:
    file = small.folder / "config" / "factorial" / "inductor_manual.yaml"
    broken = load_yaml(file)
    broken["cells"]["dynamo"]["mode"]["backend"] = "no_such_backend"
    file.write_text(yaml.safe_dump(broken), encoding="utf-8")
    status, text = small.run("steady_state", "--factorial", "inductor_manual")
    record = read(small.folder / "steady_state" / "inductor_manual.json", SteadyStateRecord)
    assert (status, record.status) == (0, "ok"), text
    assert record.data is not None
    cells = {cell.cell: cell for cell in record.data.cells}
    assert (cells["E"].status, cells["dynamo"].status) == ("ok", "failed")
    assert "no_such_backend" in cells["dynamo"].reason
    assert {block.cell for block in record.data.blocks} == {run.cell for run in record.data.sequences} == {"E"}


def test_only_the_fastest_of_the_heat_go_on(small: SmallStudy) -> None:
    file = small.folder / "config" / "factorial" / "inductor_manual.yaml"
    given = load_yaml(file)
    for cell, layers in (("E", 1), ("A", 12), ("B", 1)):
        given["cells"][cell] = copy.deepcopy(given["cells"]["E"])
        given["cells"][cell]["model"]["num_layers"] = layers
    cells = {cell: given["cells"][cell] for cell in ("E", "A", "B")}
    final = {**given, "modes": dict.fromkeys(cells, "eager"), "cells": cells, "twins": [], "finalists": 2}
    file.write_text(yaml.safe_dump(final), encoding="utf-8")
    status, text = small.run("steady_state", "--factorial", "inductor_manual")
    record = read(small.folder / "steady_state" / "inductor_manual.json", SteadyStateRecord)
    assert (status, record.status) == (0, "ok"), text
    assert record.data is not None
    assert {run.cell for run in record.data.heat} == {"E", "A", "B"}
    assert {block.cell for block in record.data.blocks} == {run.cell for run in record.data.sequences} == {"E", "B"}
    fate = {cell.cell: (cell.status, cell.reason) for cell in record.data.cells}
    assert (fate["E"][0], fate["B"][0], fate["A"][0]) == ("ok", "ok", "skipped")
    assert re.match(r"number 3 of the heat: [\d.]+ s for the sequence, [\d.]+ s would have been enough", fate["A"][1])


def test_sets_of_another_gpu_are_not_taken_up_again(small: SmallStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPMODE_BUILD", str(tmp_path))
    cells, runnable = cells_of(document(small, twins=False))
    for settings in runnable.values():
        settings.measure.steady_state.num_sets = 3
    measured: list[str] = []

    def measured_on(gpu_uuid: str, broken_set: int | None = None) -> list[str]:
        def measure_set(study: Any, settings: Any, index: int) -> Set:
            if index == broken_set:
                raise KeyboardInterrupt
            measured.append(f"{gpu_uuid}, set {index}")
            return Set(blocks=[], sequences=[], failed={}, stopped=measured[-1])

        monkeypatch.setattr(steady_state, "_measure_set", measure_set)
        monkeypatch.setattr(steady_state.hardware, "host", lambda: Host(hostname="vm", gpu_uuid=gpu_uuid))
        return steady_state.measure(small.study, "inductor_manual", cells, runnable, 0, Partial("key")).stopped

    with pytest.raises(KeyboardInterrupt):
        measured_on("GPU-a", broken_set=2)
    assert measured_on("GPU-b") == ["GPU-b, set 0", "GPU-b, set 1", "GPU-b, set 2"]
    del measured[:]
    assert measured_on("GPU-a") == ["GPU-a, set 0", "GPU-a, set 1", "GPU-a, set 2"]
    assert measured == ["GPU-a, set 2"]  # the others were there


def test_unknown_factorial_is_one_line(small: SmallStudy, tmp_path: Path) -> None:
    status, text = small.run("steady_state", "--factorial", "pairs")
    assert (status, text.count("\n")) == (2, 1)
    assert "--factorial: must be one that params.yaml names; got pairs. Composed: inductor_manual." in text
