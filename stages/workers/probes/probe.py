"""What a probe is, and the check documents (`stages.core.records.correctness.Check`) that it makes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from stages.workers.probes.bench import Bench, relative_error

Document = dict[str, Any]
_WORST_FIRST = ("fail", "pass", "reported", "not_run")


@dataclass(frozen=True)
class Probe:
    """One probe. `hazards`: what it looks for, in words; `about`: what it does; `run` makes its checks on one mode."""

    name: str
    hazards: tuple[str, ...]
    about: str
    run: Callable[[Bench], Iterable[Document]]


def held_to(name: str, subject: str, value: float, limit: float, num_calls: int, reason: str = "") -> Document:
    """A check that passes where value <= limit; a value that is no number fails."""
    return _document(name, subject, "pass" if value <= limit else "fail", value, limit, num_calls, reason)


def held_to_error_rule(bench: Bench, name: str, subject: str, trio: Iterable[Tensor], num_calls: int, how: str = "") -> Document:
    """A check on the logits [n, v] of the mode, eager and the reference: the mode's error within what eager's own allows."""
    seen, own, exact = trio
    error = relative_error(own, exact)
    reason = f"{how}; " if how else ""
    limit = bench.error_limit(error, len(exact))
    return held_to(name, subject, relative_error(seen, exact), limit, num_calls, f"{reason}eager's own error {error:.3g}")


def at_least(name: str, subject: str, value: float, limit: float, num_calls: int, reason: str = "") -> Document:
    """A check that passes where value >= limit; a value that is no number fails."""
    return _document(name, subject, "pass" if value >= limit else "fail", value, limit, num_calls, reason)


def reported(name: str, subject: str, value: float, num_calls: int, reason: str) -> Document:
    """A measurement that is shown and decides nothing."""
    return _document(name, subject, "reported", value, None, num_calls, reason)


def not_run(name: str, reason: str) -> Document:
    """A check that does not apply here, and why."""
    return _document(name, "all", "not_run", None, None, 0, reason)


def worst(documents: list[Document]) -> str:
    """One verdict for a probe: fail, else pass, else reported, else not_run."""
    seen = {document["verdict"] for document in documents}
    return next((verdict for verdict in _WORST_FIRST if verdict in seen), "not_run")


def _document(name: str, subject: str, verdict: str, value: float | None, limit: float | None, num_calls: int, reason: str) -> Document:
    return {
        "name": name,
        "subject": subject,
        "verdict": verdict,
        "value": _finite(value),
        "limit": _finite(limit),
        "num_calls": num_calls,
        "reason": reason,
    }


def _finite(number: float | None) -> float | None:
    """Records are JSON, which has no NaN; the verdict says `fail` all the same."""
    return float(number) if number is not None and math.isfinite(number) else None
