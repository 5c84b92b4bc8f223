"""A cell that breaks is a record, and nothing of it raises."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from stages.core.records.base import read
from stages.sweeps.choices import Choice
from stages.sweeps.jobs import run_cell
from stages.sweeps.results import CellResult, described, read_cells, varying
from stages.sweeps.table import is_failed, remarks, table
from tests.tracking.study_folder import example, write_study, write_text

PARAMS = "{name: a, model: tiny, trace: smoke, modes: [eager], factorials: [], measure: smoke, device: cpu}"
ENDING = {"exit_status": 0, "log_tail": [], "seconds": {}, "started_at": "2026-11-29T10:00:00", "ended_at": "2026-11-29T10:01:00"}


@pytest.fixture
def sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_text(tmp_path / "params.yaml", PARAMS)
    monkeypatch.setenv("OPMODE_PARAMS", str(tmp_path / "params.yaml"))
    return tmp_path / "sweep"


def test_choice_that_params_refuse_ends_the_cell_before_any_stage(sweep: Path) -> None:
    result = run_cell(sweep / "cell_0", [Choice("precision", "fp99", "fp99")])
    assert (result.status, result.stage, result.seconds) == ("failed", "params", {})
    assert "fp99" in result.log_tail[-1]
    assert read(sweep / "cell_0" / "cell.json", CellResult) == result


def test_stage_that_ends_badly_is_recorded_with_its_last_lines(sweep: Path) -> None:
    result = run_cell(sweep / "cell_0", [Choice("model", "no_such_model", "no_such_model")])
    assert (result.status, result.stage, result.exit_status) == ("failed", "compose", 2)
    assert "no_such_model" in "".join(result.log_tail)
    assert is_failed(sweep, result)
    assert "failed in compose" in remarks(sweep, [result])[0]


def cell(sweep: Path, number: int, mode: str, status: str = "ok") -> CellResult:
    study = example(tuple(dict.fromkeys(["eager", mode])))
    study["modes"][mode]["status"] = status
    write_study(sweep / f"cell_{number}" / "study", study)
    told = {"cell": f"cell_{number}", "choices": {"mode": mode, "device": "cpu"}, "mode": mode, "status": "ok", "stage": ""}
    result = CellResult.model_validate({**told, **ENDING})
    write_text(sweep / f"cell_{number}" / "cell.json", result.model_dump_json())
    return result


def test_mode_that_broke_fails_its_cell_and_one_that_cannot_run_here_does_not(sweep: Path) -> None:
    assert not is_failed(sweep, cell(sweep, 0, "compile"))
    assert not is_failed(sweep, cell(sweep, 1, "max_autotune", "unavailable"))
    assert is_failed(sweep, cell(sweep, 2, "dynamo", "failed"))


def test_cells_come_in_the_order_of_their_numbers_and_are_named_by_what_varies(sweep: Path) -> None:
    for number in (2, 10, 1):
        cell(sweep, number, "compile" if number == 1 else "eager")
    cells = read_cells(sweep)
    assert [found.cell for found in cells] == ["cell_1", "cell_2", "cell_10"]
    assert [described(found, varying(cells)) for found in cells] == ["mode=compile", "mode=eager", "mode=eager"]
    assert table(sweep, cells).row_count == 3


def test_80_columns_break_a_long_name_and_no_number(sweep: Path) -> None:
    named = {"choices": {"mode": "compile_coordinate_descent", "device": "cpu"}}
    cells = [cell(sweep, 0, "eager"), cell(sweep, 1, "compile").model_copy(update=named)]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(table(sweep, cells))
    printed = console.export_text()
    assert "compile_coordinate_descent" not in printed
    assert all(name in printed for name in ("cold (s)", "sequence", "speed-up", "goodput", "answers"))


def test_80_columns_hold_a_mode_and_a_precision_without_a_break(sweep: Path) -> None:
    choices = [{"mode": mode, "precision": precision} for mode, precision in (("eager", "fp32"), ("compile", "bf16"))]
    cells = [cell(sweep, index, one["mode"]).model_copy(update={"choices": one}) for index, one in enumerate(choices)]
    console = Console(width=80, record=True, file=io.StringIO())
    console.print(table(sweep, cells))
    printed = console.export_text()
    assert all(name in printed for name in ("precision", "speed-up", "compile", "correct"))


def test_a_cell_on_a_machine_that_shifted_its_speed_has_a_remark_with_the_numbers(sweep: Path) -> None:
    steady, result = cell(sweep, 0, "compile"), cell(sweep, 1, "compile")
    assert remarks(sweep, [steady]) == []
    study = example(("eager", "compile"))
    shift = {"mode": "eager", "point": "prefill/64", "least_us": 500.0, "most_us": 900.0, "num_shifted": 1, "of": 8}
    study["attribution"] = {"pair": {"speed_shift": shift}}
    write_study(sweep / "cell_1" / "study", study)
    said = "equal work differs by over 30 % in 1 of 8 timings, most eager at prefill 64, 500 µs to 900 µs."
    assert remarks(sweep, [result]) == [f"cell_1: The machine shifted its speed: {said}"]
