"""Whether two measurements of one saving agree: the profile's busy and idle time against a contrast of rotations."""

from __future__ import annotations

TOLERANCE = 0.05


def reconciled(saved_us: float, value_us: float, low_us: float | None, high_us: float | None) -> bool:
    """Whether `saved_us` lies within the contrast's interval, widened by 5 % of its value; without an interval, within 5 %."""
    slack = TOLERANCE * abs(value_us)
    lowest = value_us if low_us is None else low_us
    highest = value_us if high_us is None else high_us
    return lowest - slack <= saved_us <= highest + slack
