"""One check of a setting, as one line for the user."""

from __future__ import annotations

import math

from stages.core.errors import UserError


def require(holds: bool, key: str, rule: str, value: object, remedy: str) -> None:
    """Raise UserError(key, rule, value, remedy) unless the rule holds."""
    if not holds:
        raise UserError(key, rule, value, remedy)


def require_between(key: str, value: float, low: float, high: float) -> None:
    """Raise UserError unless `low <= value <= high`; NaN and infinity never pass."""
    rule = f"must be from {low:g} to {high:g}"
    require(math.isfinite(value) and low <= value <= high, key, rule, value, "Change it in conf/ or by an override.")
