"""The fastest mode at one point of a factorial."""

from __future__ import annotations

from stages.core.records.base import Document


class Winner(Document):
    """The fastest mode of one factorial at one point; `mode` is `undecided` while `tied` modes are not told apart from it.

    `confidence` of each comparison is corrected for their number. `least_speedup`: the closest other / `fastest`.
    """

    mode: str
    fastest: str
    tied: list[str]
    least_speedup: float
    num_compared: int
    confidence: float
