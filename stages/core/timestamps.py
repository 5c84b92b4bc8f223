"""The time as records say it."""

from __future__ import annotations

from datetime import UTC, datetime


def now(timespec: str = "seconds") -> str:
    """The time now, UTC, ISO 8601, to the second or to what `timespec` names (`milliseconds`)."""
    return datetime.now(UTC).isoformat(timespec=timespec)
