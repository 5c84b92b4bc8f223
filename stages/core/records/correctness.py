"""correctness/<mode>.json: whether a mode gives the answers that eager gives."""

from __future__ import annotations

from typing import Literal

from stages.core.records.base import Document, Record


class Check(Document):
    """One check: its name, the shape or task it ran on, the value seen and the limit it was held to."""

    name: str
    subject: str
    verdict: Literal["pass", "fail", "not_run"]
    value: float | None
    limit: float | None
    num_calls: int
    reason: str = ""


class Answers(Document):
    """All checks of one mode. The verdict is `correct` only if every check passed."""

    verdict: Literal["correct", "wrong", "not_checked"]
    checks: list[Check]


class CorrectnessRecord(Record[Answers]):
    """correctness/<mode>.json."""
