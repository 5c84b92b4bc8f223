"""correctness: the verdict over all checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stages import correctness
from stages.core.partial import Partial
from stages.core.records.correctness import Check
from stages.correctness import verdict
from tests.workers.small_study import write_study


def checks(*verdicts: str) -> list[Check]:
    return [Check(name="a", subject="b", verdict=one, value=0, limit=1, num_calls=6) for one in verdicts]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (("pass", "pass"), "correct"),
        (("pass", "fail", "pass"), "wrong"),
        (("fail",), "wrong"),
        (("not_run", "fail"), "wrong"),
        (("not_run", "pass"), "correct"),
        (("not_run",), "not_checked"),
        ((), "not_checked"),
    ],
)
def test_one_failed_check_is_a_wrong_mode(verdicts: tuple[str, ...], expected: str) -> None:
    assert verdict(checks(*verdicts)) == expected


def test_packages_check_their_inputs_in_this_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = write_study(tmp_path, "eager").study
    asked: dict[str, Any] = {}

    def worker(*_: Any, **options: Any) -> Any:
        asked.update(options)
        raise RuntimeError("asked")

    monkeypatch.setattr(correctness, "worker", worker)
    monkeypatch.setenv("OPMODE_BUILD", str(tmp_path / "build"))
    with pytest.raises(RuntimeError, match="asked"):
        correctness.measure(study, study.settings("eager"), Partial("key"))
    assert asked["variables"] == {"AOTI_RUNTIME_CHECK_INPUTS": "1"}
