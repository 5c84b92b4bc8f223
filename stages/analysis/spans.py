"""The choice along a worker's life: from which lifetime on the verdict's rule picks which mode.

The verdict's table has the few lifetimes of params.yaml. Between them the same rule is asked on a fine grid, and every
change is narrowed down by bisection, so that the headline can say from which lifetime on a mode is the one to run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

from stages.analysis import services
from stages.analysis.candidates import Candidate, candidates_at
from stages.analysis.reading import StudyRecords
from stages.analysis.wording import UNDECIDED, Spans, Table
from stages.core.records.verdict import Choice, Span

Choose = Callable[[list[Candidate]], Choice | None]
CACHES = ("cold", "warm")  # the baseline has no artifact, so from one it could not be chosen
NUM_POINTS = 240
EXACT_SHARE = 1e-4  # a change of mode is known to this share of the lifetime
LEAST_SHARE = 0.1  # a choice that holds for less of a lifetime, none of those asked for among it, is not worth a word


def all_spans(records: StudyRecords, eligible: Sequence[str], choose: Choose) -> Spans:
    """Rate -> cache state -> spans, from the first lifetime at which anything counts to the longest of params.yaml."""
    found: Spans = {}
    for rate in services.verdict_rates(records.params):
        for cache in CACHES:
            at = candidates_at(records, eligible, rate, cache)
            along = spans(lambda lifetime_s, at=at: _picked(choose, at(lifetime_s)), records.params.lifetimes_s)  # type: ignore[misc]
            if along:
                found.setdefault(rate, {})[cache] = along
    return found


def _picked(choose: Choose, found: list[Candidate]) -> str:
    """The choice, or an empty string while nothing counts yet, whatever the mode."""
    choice = choose(found) if any(candidate.high > 0 for candidate in found) else None
    return choice.mode if choice else ""


def spans(pick: Callable[[float], str], lifetimes_s: Sequence[float]) -> list[Span]:
    """`pick` gives the choice at a lifetime in s, or an empty string. What holds only for a sliver is left out."""
    longest, first = max(lifetimes_s), min(1.0, *lifetimes_s)
    grid = [first * (longest / first) ** (index / (NUM_POINTS - 1)) for index in range(NUM_POINTS)]
    points = sorted({*grid[:-1], *map(float, lifetimes_s)})
    picked = [pick(point) for point in points]
    changes = [Span(mode=picked[0], from_s=0.0)]
    for (low, before), (high, after) in pairwise(zip(points, picked, strict=True)):
        if after != before:
            changes.append(Span(mode=after, from_s=_change_s(pick, low, high)))
    return _told(changes, lifetimes_s)


def _change_s(pick: Callable[[float], str], low: float, high: float) -> float:
    """The lifetime from which on the choice is that at `high`."""
    wanted = pick(high)
    while high > low * (1 + EXACT_SHARE):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if pick(middle) == wanted else (middle, high)
    return high


def _told(changes: list[Span], lifetimes_s: Sequence[float]) -> list[Span]:
    """Without slivers and without what comes before anything counts; neighbours of one mode as one span."""
    ends = [*(span.from_s for span in changes[1:]), math.inf]
    kept = [span for span, end in zip(changes, ends, strict=True) if span.mode and _worth_a_word(span.from_s, end, lifetimes_s)]
    joined: list[Span] = []
    for span in kept:
        if not joined or joined[-1].mode != span.mode:
            joined.append(span)
    return joined


def _worth_a_word(from_s: float, until_s: float, lifetimes_s: Sequence[float]) -> bool:
    return until_s > (1 + LEAST_SHARE) * from_s or any(from_s <= lifetime < until_s for lifetime in lifetimes_s)


def shorter(along: Spans, table: Table, headline: str) -> str:
    """The mode to run below the headline's span from cold caches: the last decided one before it, empty if none."""
    rate = next(iter(table[max(table, key=float)]), "") if table else ""
    cold: Mapping[str, list[Span]] = along.get(rate, {})
    decided = [span.mode for span in cold.get("cold", []) if span.mode not in (UNDECIDED, headline)]
    return decided[-1] if decided else ""
