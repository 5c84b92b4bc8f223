"""The verdict's part of attribution.json."""

from __future__ import annotations

from pydantic import Field

from stages.core.records.base import Document


class Choice(Document):
    """The recommendation for one lifetime and arrival rate."""

    mode: str
    runner_up: str | None
    completions: float
    runner_up_completions: float | None
    reason: str


class Span(Document):
    """From this worker lifetime on, in s, up to the next span's, the choice is `mode`, which may be `undecided`."""

    mode: str
    from_s: float


class Verdict(Document):
    """recommended: lifetime_s (string) -> rate (string) -> Choice; `mode` may be `undecided`.

    `spans`: rate -> cold|warm -> the choice along a worker's life, ascending. `shorter`: the mode to run below the
    headline's span, empty if none. `configurations`: what to copy for the headline's mode, `shorter` and the runner-up.
    """

    sentence: str
    recommended: dict[str, dict[str, Choice]]
    reasons: list[str]
    caveats: list[str]
    would_flip: list[str]
    rejected: dict[str, str]
    configuration: str
    spans: dict[str, dict[str, list[Span]]] = Field(default_factory=dict)
    shorter: str = ""
    configurations: dict[str, str] = Field(default_factory=dict)
