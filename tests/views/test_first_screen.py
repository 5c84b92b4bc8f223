"""What the first screen says of gains, and what a page says instead of a table that has nothing."""

from __future__ import annotations

from typing import Any

from stages.views.headline import why
from stages.views.tables.steps import floors, no_floor


def test_savings_carry_their_interval(example: dict[str, Any]) -> None:
    total = example["attribution"]["inductor_manual"]["1"]["total"]
    total |= {"value": 2500.0, "low": 2000.0, "high": 3000.0}
    assert "save 2.50 ms [2.00, 3.00] of that step (decode batch 1)" in why(example)


def test_without_replay_what_compiling_saves_is_said(cpu_study: dict[str, Any]) -> None:
    for answer in cpu_study["attribution"].values():
        answer["1"] |= {"total": None, "compiled_alone": {"value": 400.0, "low": None, "high": None}}
    assert "Compiling saves 0.400 ms of that step (decode batch 1)." in why(cpu_study)


def test_study_without_any_floor_says_why_once(example: dict[str, Any]) -> None:
    assert floors(example).rows
    assert no_floor(example) == []
    for mode in example["modes"].values():
        mode["floor"] = {"1": {"floor_us": None, "ratio": None, "reason": "not applicable: no bandwidth was measured"}}
    assert floors(example).rows == []
    assert no_floor(example) == ["floor of a step: not applicable: no bandwidth was measured"]
