"""correctness: the verdict over all checks."""

from __future__ import annotations

import pytest

from stages.core.records.correctness import Check
from stages.correctness import verdict


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
