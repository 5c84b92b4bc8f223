"""From which lifetime on a mode is ahead of every other one, and which it overtakes last."""

from __future__ import annotations

import math
from collections.abc import Iterable

from stages.analysis import eligibility, services
from stages.analysis.lifetimes import CACHES
from stages.analysis.reading import StudyRecords
from stages.core.records.lifetime import BreakEven


def next_best(records: StudyRecords, mode: str, rates: Iterable[str]) -> dict[str, dict[str, BreakEven]]:
    """Rate -> cache state -> break-even with all others that may be recommended; empty for a mode that may not."""
    if eligibility.rejection(records, mode):
        return {}
    others = [other for other in records.modes if other != mode and not eligibility.rejection(records, other)]
    found: dict[str, dict[str, BreakEven]] = {}
    for rate in rates:
        for cache in CACHES:
            pairs = {other: pair for other in others if (pair := _pair(records, mode, other, rate, cache))}
            if pairs:
                found.setdefault(rate, {})[cache] = ahead_of_all(pairs)
    return found


def ahead_of_all(pairs: dict[str, BreakEven]) -> BreakEven:
    """The last of the single break-evens. The interval is that of the latest: no end of it lies before another's.

    One mode that is never overtaken, or one that may not be, decides.
    """
    last = max(pairs, key=lambda other: _order(pairs[other]))
    if pairs[last].answer in ("never", "undecided"):
        return pairs[last].model_copy(update={"against": last})
    lows, highs = ([getattr(pair, end) for pair in pairs.values()] for end in ("low_s", "high_s"))
    ends = {"low_s": _latest(lows), "high_s": _latest(highs)}
    return pairs[last].model_copy(update={"against": last, **ends})


def _order(pair: BreakEven) -> tuple[int, float]:
    """Never after undecided after any lifetime; of several that are undecided, the one with the latest crossing."""
    rank = {"never": 2, "undecided": 1}.get(pair.answer, 0)
    return rank, math.inf if pair.lifetime_s is None else pair.lifetime_s


def _latest(ends: list[float | None]) -> float | None:
    known = [end for end in ends if end is not None]
    return max(known) if len(known) == len(ends) else None


def _pair(records: StudyRecords, mode: str, other: str, rate: str, cache: str) -> BreakEven | None:
    """The break-even with one other mode from the same cache state, or from its cold where it has none."""
    mine, theirs = ((records.warmup[name].data, records.load[name].data) for name in (mode, other))
    if not (mine[0] and mine[1] and theirs[0] and theirs[1]):
        return None
    own = services.corners(mine[0], mine[1], rate, cache)
    rival = services.corners(theirs[0], theirs[1], rate, cache) or services.corners(theirs[0], theirs[1], rate, "cold")
    bounds = mine[1].max_goodput_is_lower_bound, theirs[1].max_goodput_is_lower_bound
    return services.break_even_at(own, rival, rate, bounds) if own and rival else None
