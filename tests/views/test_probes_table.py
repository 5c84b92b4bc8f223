"""Probes down, modes across; studies from before there were probes show no such table."""

from __future__ import annotations

from typing import Any

from stages.views.tables.proof import probes


def run(name: str, verdict: str, num_checks: int) -> dict[str, Any]:
    return {"name": name, "hazards": ["first", "second"], "about": "", "verdict": verdict, "num_checks": num_checks, "duration_s": 0.1}


def study(**modes: list[dict[str, Any]]) -> dict[str, Any]:
    counted = {name: sum(one["num_checks"] > 0 for one in runs) for name, runs in modes.items()}
    return {
        "baseline": "eager",
        "modes": {name: {"correctness": {"probes": runs, "num_probes_run": counted[name]}} for name, runs in modes.items()},
    }


def test_table_has_a_row_a_probe_and_a_column_a_mode() -> None:
    table = probes(
        study(
            eager=[run("padding", "pass", 2), run("sampling", "not_run", 0)],
            compile=[run("padding", "fail", 2), run("held_output", "reported", 1)],
        )
    )
    cells = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert list(cells) == ["padding", "sampling", "held_output", "executed"]
    assert [cells["executed"][mode] for mode in ("eager", "compile")] == ["1 of 2", "2 of 2"]
    assert "fail" in cells["padding"]["compile"]
    assert "fail" not in cells["padding"]["eager"]
    assert "not run" in cells["sampling"]["eager"]
    assert cells["held_output"]["compile"].startswith("reported")
    assert cells["padding"]["looks for"] == "first; second"


def test_probe_with_nothing_to_check_says_so() -> None:
    idle = run("adapter_switch", "not_run", 0) | {"reason": "not applicable: the model takes no adapters"}
    table = probes(study(eager=[idle, run("known_answers", "not_run", 0) | {"reason": "random weights know no answers"}]))
    assert [row[1] for row in table.rows] == ["– not applicable", "– not run", "0 of 2"]


def test_study_without_probes_has_no_table() -> None:
    assert list(probes({"baseline": "eager", "modes": {"eager": {"correctness": {"verdict": "correct", "checks": []}}}}).rows) == []
