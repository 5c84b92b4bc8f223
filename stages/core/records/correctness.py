"""correctness/<mode>.json: whether a mode gives the answers that eager gives."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stages.core.records.base import Document, Record


class Check(Document):
    """One check: its name, the shape or task it ran on, the value seen and the limit it was held to.

    `reported`: measured, not held to a limit. `probe`: the probe that it belongs to.
    """

    name: str
    subject: str
    verdict: Literal["pass", "fail", "not_run", "reported"]
    value: float | None
    limit: float | None
    num_calls: int
    reason: str = ""
    probe: str = ""


class ProbeRun(Document):
    """One probe on one mode. `hazards`: what can go wrong, in words. `verdict`: the worst of its checks. `reason`: why it made none."""

    name: str
    hazards: list[str]
    about: str
    verdict: Literal["pass", "fail", "not_run", "reported"]
    num_checks: int
    duration_s: float
    reason: str = ""


class Answers(Document):
    """All checks of one mode. The verdict is `correct` only if every check passed.

    `num_probes_run` counts probes that made at least one check; the others say why they did not apply.
    """

    verdict: Literal["correct", "wrong", "not_checked"]
    checks: list[Check]
    probes: list[ProbeRun] = Field(default=[])
    num_probes_run: int = 0


class CorrectnessRecord(Record[Answers]):
    """correctness/<mode>.json."""
