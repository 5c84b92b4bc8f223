"""Eager execution: the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stages.modes.base import BaseMode


@dataclass(kw_only=True)
class Eager(BaseMode):
    """Every operator is dispatched and launched by Python, one by one."""

    transform: str = "none"
    replay: str = "none"
    replays: ClassVar[tuple[str, ...]] = ("none",)

    def transforms(self) -> tuple[str, ...]:
        """Nothing compiles."""
        return ("none",)
