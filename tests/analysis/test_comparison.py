"""Two studies of the same work: each judgement against a change made by hand."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from stages.analysis.comparison import compare, environment_changes, judged_ratio
from stages.core.errors import UserError
from tests.tracking.study_folder import example

Study = dict[str, Any]


def judgements(before: Study, after: Study, judgement: str) -> list[tuple[str, str]]:
    return [(row.mode, row.subject) for row in compare(before, after) if row.judgement == judgement]


def pair() -> tuple[Study, Study]:
    before = example(("eager", "compile"))
    return before, copy.deepcopy(before)


def test_study_against_itself_is_nowhere_worse_or_better() -> None:
    before, after = pair()
    assert not judgements(before, after, "worse")
    assert not judgements(before, after, "better")


def test_evidence_that_is_no_longer_confirmed_comes_first() -> None:
    before, after = pair()
    after["modes"]["compile"]["evidence"]["verdict"] = "refuted"
    after["modes"]["compile"]["startup"]["cold"]["ready_s"] *= 2
    rows = compare(before, after)
    worse = [(row.section, row.subject) for row in rows if row.judgement == "worse"]
    assert worse == [("evidence", "claim"), ("startup", "ready from cold (s)")]
    assert not [row for row in rows if row.mode == "compile" and row.subject.startswith("speed-up")]


def test_new_fallback_is_worse_and_its_absence_better() -> None:
    before, after = pair()
    after["modes"]["compile"]["evidence"]["path_counts"]["fallback"] = 20
    assert judgements(before, after, "worse") == [("compile", "share of steps that fell back")]
    assert judgements(after, before, "better") == [("compile", "share of steps that fell back")]


def test_wrong_answers_are_worse() -> None:
    before, after = pair()
    after["modes"]["compile"]["correctness"]["verdict"] = "wrong"
    assert ("compile", "answers") in judgements(before, after, "worse")


def test_mode_that_fails_now_is_worse_and_its_numbers_are_not_compared() -> None:
    before, after = pair()
    after["modes"]["compile"]["status"] = "failed"
    assert [row.subject for row in compare(before, after) if row.mode == "compile"] == ["status"]
    assert judgements(before, after, "worse") == [("compile", "status")]


def test_mode_that_is_gone_is_said_so() -> None:
    before, after = pair()
    del after["modes"]["compile"]
    assert judgements(before, after, "undecided") == [("compile", "status"), *judgements(example(("eager",)), after, "undecided")]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"value": 2.0, "low": 1.9, "high": 2.1}, {"value": 3.0, "low": 2.9, "high": 3.1}, "better"),
        ({"value": 3.0, "low": 2.9, "high": 3.1}, {"value": 2.0, "low": 1.9, "high": 2.1}, "worse"),
        ({"value": 2.0, "low": 1.9, "high": 2.1}, {"value": 2.1, "low": 2.0, "high": 2.2}, "undecided"),
        ({"value": 2.0, "low": 1.999, "high": 2.001}, {"value": 2.002, "low": 2.001, "high": 2.003}, "same"),
        ({"value": 2.0, "low": None, "high": None}, {"value": 2.08, "low": None, "high": None}, "undecided"),
        (2.0, 2.2, "better"),
        (2.0, 1.8, "worse"),
        (2.0, 2.0, "same"),
    ],
)
def test_speedup_ratio_is_judged_by_intervals_else_by_distance(before: Any, after: Any, expected: str) -> None:
    assert judged_ratio(before, after, 0.05, higher_is_better=True) == expected
    opposite = {"better": "worse", "worse": "better"}.get(expected, expected)
    assert judged_ratio(before, after, 0.05, higher_is_better=False) == opposite


@pytest.mark.parametrize(
    ("section", "key", "value"), [("model", "name", "other"), ("model", "precision", "fp32"), ("trace", "name", "other")]
)
def test_studies_of_different_work_are_refused(section: str, key: str, value: str) -> None:
    before, after = pair()
    after[section][key] = value
    with pytest.raises(UserError, match="must be the same in both studies"):
        compare(before, after)


def test_another_release_is_no_obstacle_and_is_listed() -> None:
    before, after = pair()
    after["environment"]["torch"] = "9.9"
    assert environment_changes(before, after) == {"torch": (before["environment"]["torch"], "9.9")}
    assert not judgements(before, after, "worse")
