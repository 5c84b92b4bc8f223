"""What each mode that may be recommended would have served at one worker lifetime and arrival rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from stages.analysis import lifetimes, services
from stages.analysis.lifetimes import EQUAL_SHARE, Corners
from stages.analysis.reading import StudyRecords
from stages.core.records.load import Load


class Candidate(NamedTuple):
    """A mode that may be recommended, at one lifetime and rate: useful completions with their range, and its TPOT in ms."""

    mode: str
    completions: float
    low: float
    high: float
    tpot_p50_ms: float | None
    tpot_p99_ms: float | None


TPOT_SHARE = 0.05  # one load run a rate: smaller differences separate nothing


def equal(first: Candidate, other: Candidate) -> bool:
    """Whether the completions of another mode are not told apart from those of the first, which has the most."""
    served = other.completions >= (1 - EQUAL_SHARE) * first.completions or other.high >= first.low
    return served and other.high > 0


def tpot_ms(found: Sequence[Candidate]) -> tuple[str, dict[str, float]]:
    """`p99` where every mode has one, else `p50`, and each mode's own where it is known."""
    tail = all(candidate.tpot_p99_ms is not None for candidate in found)
    times = {candidate.mode: candidate.tpot_p99_ms if tail else candidate.tpot_p50_ms for candidate in found}
    return "p99" if tail else "p50", {mode: value for mode, value in times.items() if value is not None}


def measurably_lower(tpot: float, other: float) -> bool:
    """Whether a TPOT is lower than another by what one load run can tell."""
    return other >= (1 + TPOT_SHARE) * tpot


def candidates_at(records: StudyRecords, eligible: Sequence[str], rate: str, cache: str) -> Callable[[float], list[Candidate]]:
    """From a lifetime in s to every eligible mode that was started from this cache state and offered this rate."""
    offered = _offered(records, eligible, rate, cache)
    best = max((corners for _, corners in offered.values()), key=lambda corners: corners.point.goodput_per_s, default=None)

    def at(lifetime_s: float) -> list[Candidate]:
        assert best or not offered, "one of those that deliver delivers most"
        return [
            _candidate(mode, load, services.compared(own, best, rate)[0], (lifetime_s, rate))
            for mode, (load, own) in offered.items()
            if best
        ]

    return at


def _offered(records: StudyRecords, eligible: Sequence[str], rate: str, cache: str) -> dict[str, tuple[Load, Corners]]:
    """What each mode delivers at this rate from this cache state, where both were measured."""
    measured = {mode: (records.warmup[mode].data, records.load[mode].data) for mode in eligible}
    found = {mode: (load, services.corners(start, load, rate, cache)) for mode, (start, load) in measured.items() if start and load}
    return {mode: (load, corners) for mode, (load, corners) in found.items() if corners}


def _candidate(mode: str, load: Load, own: Corners, at: tuple[float, str]) -> Candidate:
    """`at`: lifetime in s, and rate."""
    lifetime_s, rate = at
    run = services.run_at(load, rate)
    counts = [lifetimes.completions(lifetime_s, service) for service in own[:3]]
    unbounded = rate == services.SATURATION and load.max_goodput_is_lower_bound and lifetime_s > own.point.ready_s
    high = float("inf") if unbounded else max(counts)
    tpot = run.tpot_ms if run else None
    return Candidate(mode, counts[0], min(counts), high, tpot.p50 if tpot else None, tpot.p99 if tpot else None)
