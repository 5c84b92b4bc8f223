"""A mode's part of attribution.json on the lifetime of a worker: ready times, completions, break-evens."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stages.core.records.base import Document


class BreakEven(Document):
    """The smallest lifetime beyond which a mode stays ahead at one arrival rate: of the baseline, or of all others.

    `against`: of all others, the mode that is overtaken last, or never.
    """

    answer: Literal["at", "always", "never", "undecided"]
    lifetime_s: float | None
    low_s: float | None
    high_s: float | None
    against: str | None = None


class Lifetime(Document):
    """Useful completions against worker lifetime. Keys: rate (string, 1/s, or `saturation`), then cache state.

    `break_even`: rate -> cold|warm|artifact -> BreakEven; `next_best` likewise, against all other modes.
    `completions`: rate -> cache state -> [[lifetime_s, n], ...]; `middle_way`: rate -> the same, serving eager while compiling.
    """

    ready_s: dict[str, float]
    break_even: dict[str, dict[str, BreakEven]]
    completions: dict[str, dict[str, list[list[float]]]]
    next_best: dict[str, dict[str, BreakEven]] = Field(default_factory=dict)
    middle_way: dict[str, list[list[float]]] = Field(default_factory=dict)
