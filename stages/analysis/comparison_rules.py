"""How one quantity of two studies is judged: better, worse, same, or undecided.

Ratios with intervals on both sides are judged by the interval of their quotient against 1 %. Single values carry no
interval: they need a named distance before anything is said, larger for absolute times than for speed-ups, because
eager itself drifts between runs and a speed-up was taken inside one rotation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Judgement = Literal["better", "worse", "same", "undecided"]
Study = Mapping[str, Any]

INTERVAL_MARGIN = 0.01
SPEEDUP_DISTANCE = 0.05
TIME_DISTANCE = 0.10
STARTUP_DISTANCE = 0.25
REPEATED_START_DISTANCE = 0.10
UNVOUCHED_DISTANCE = 0.25
FEWEST_STARTS = 3
PROOF = {"confirmed": 2, "not_proven": 1, "refuted": 0}


@dataclass(frozen=True)
class Difference:
    """One quantity of one mode in both studies, and what B is. `why`: what a reader needs beside the two values."""

    section: str
    mode: str
    subject: str
    before: str
    after: str
    judgement: Judgement
    why: str = ""


def at(node: Any, *keys: str) -> Mapping[str, Any]:
    """The object at a path of keys, or an empty one."""
    for key in keys:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else {}


def number(value: Any) -> float | None:
    """A finite number, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def shown(value: Any) -> str:
    """Four significant digits of a number; any other value as text."""
    found = number(value)
    return str(value) if found is None else f"{found:.4g}"


def judged_ratio(before: Any, after: Any, distance: float, *, higher_is_better: bool) -> Judgement:
    """Judge after / before, both above 0; each side is a number or `{value, low, high}`. Intervals decide; else `distance` does."""
    first, second = interval(before), interval(after)
    if have_intervals(before, after):
        low, high, margin = second[1] / first[2], second[2] / first[1], INTERVAL_MARGIN
        if low >= 1 - margin and high <= 1 + margin:
            return "same"
    else:
        low = high = second[0] / first[0]
        margin = distance
    if low > 1 + margin:
        return "better" if higher_is_better else "worse"
    if high < 1 - margin:
        return "worse" if higher_is_better else "better"
    return "undecided" if low != 1 or high != 1 else "same"


def have_intervals(*sides: Any) -> bool:
    """Whether every side has an interval, so that no distance is asked for."""
    return all(low != high for _, low, high in map(interval, sides))


def judged(
    section: str, mode: str, subject: str, pair: tuple[Any, Any], distance: float, *, higher_is_better: bool, why: str = ""
) -> list[Difference]:
    """The row of a quantity above 0 on both sides; no row where either is absent."""
    first, second = interval(pair[0])[0], interval(pair[1])[0]
    if first <= 0 or second <= 0:
        return []
    judgement = judged_ratio(*pair, distance, higher_is_better=higher_is_better)
    return [Difference(section, mode, subject, shown(first), shown(second), judgement, why)]


def delivered(
    section: str, mode: str, subject: str, pair: tuple[Any, Any], distance: float, *, collapse: str = "", why: str = ""
) -> list[Difference]:
    """The row of what is served, more is better. Nothing (0 or None) on one side alone is judged too, and `collapse` is its why."""
    first, second = (interval(side)[0] > 0 for side in pair)
    if first == second:
        return judged(section, mode, subject, pair, distance, higher_is_better=True, why=why)
    before, after = ("none" if side is None else shown(interval(side)[0]) for side in pair)
    return [Difference(section, mode, subject, before, after, "better" if second else "worse", collapse)]


def counted(
    section: str, mode: str, subject: str, pair: tuple[Any, Any], *, higher_is_better: bool = False, why: str = ""
) -> list[Difference]:
    """The row of an exact count or share: any change is judged."""
    first, second = number(pair[0]), number(pair[1])
    if first is None or second is None:
        return []
    change = second - first if higher_is_better else first - second
    judgement: Judgement = "better" if change > 0 else "worse" if change < 0 else "same"
    return [Difference(section, mode, subject, shown(first), shown(second), judgement, why)]


def ranked(section: str, mode: str, subject: str, before: Any, after: Any, ranks: Mapping[str, int]) -> Difference:
    """The row of a word. Words without a rank (`not_checked`) are equal or undecided."""
    judgement: Judgement = "same" if before == after else "undecided"
    if before != after and before in ranks and after in ranks:
        change = ranks[after] - ranks[before]
        judgement = "better" if change > 0 else "worse" if change < 0 else "undecided"
    return Difference(section, mode, subject, str(before), str(after), judgement)


def interval(side: Any) -> tuple[float, float, float]:
    """Value, low, high of a number or of `{value, low, high}`; (0, 0, 0) where there is none."""
    if isinstance(side, Mapping):
        value = number(side.get("value")) or 0.0
        low, high = number(side.get("low")), number(side.get("high"))
        return (value, low, high) if low and high and low > 0 else (value, value, value)
    value = number(side) or 0.0
    return value, value, value
