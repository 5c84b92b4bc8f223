"""Median step times of modes that replay, in two runs of one study: how far each moved, on each of the three clocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from stages.analysis.comparison_rules import Study, at, number

LARGEST_MOVE = 0.01
JUDGED = "wall_us"
OTHERS = ("device_us", "pipelined_us")  # beside it: what moves on the host's clock alone is the host
Key = tuple[str, str, str]
"""Mode, shape, and the factorial that its times come from."""


@dataclass(frozen=True)
class MedianMove:
    """Median `wall_us` of a mode that replays, in both runs. `others`: relative change on the other clocks that both have.

    `host_ratio`: what the host's speed alone makes of it; None where that is not known.
    """

    mode: str
    shape: str
    before_us: float
    after_us: float
    others: Mapping[str, float]
    host_ratio: float | None = None

    @property
    def move(self) -> float:
        """Relative change, as it was measured."""
        return self.after_us / self.before_us - 1

    @property
    def equal_move(self) -> float | None:
        """The same at equal host speed; None where the host's share is not known."""
        return self.after_us / self.before_us / self.host_ratio - 1 if self.host_ratio else None

    @property
    def is_still(self) -> bool:
        """Whether it moved at most 1 %, at equal host speed where that is known."""
        return abs(self.move if self.equal_move is None else self.equal_move) <= LARGEST_MOVE


def medians(before: Study, after: Study, once: Sequence[str], host_ratios: Mapping[Key, float]) -> tuple[list[MedianMove], list[str]]:
    """The medians of both runs, and those that only one has; without those of factorials that were measured `once`."""
    first, second = _alike(_replaying(before, once), _replaying(after, once))
    keys = list(dict.fromkeys([*first, *second]))
    lost = [key for key in keys if key not in first or key not in second]
    moves = [_moved(key, first[key], second[key], host_ratios.get(key)) for key in keys if key not in lost]
    return moves, [f"{mode} at {shape}{f' ({factorial})' if factorial else ''}" for mode, shape, factorial in lost]


def _alike(first: dict[Key, dict[str, float]], second: dict[Key, dict[str, float]]) -> tuple[dict[Key, dict[str, float]], ...]:
    """Both as they are; where one study is of a release that did not say which factorial its times are of, neither says it."""
    if all(factorial for side in (first, second) for _, _, factorial in side):
        return first, second
    return tuple({(mode, shape, ""): times for (mode, shape, _), times in side.items()} for side in (first, second))


def _moved(key: Key, before: Mapping[str, float], after: Mapping[str, float], host_ratio: float | None) -> MedianMove:
    others = {clock: after[clock] / before[clock] - 1 for clock in OTHERS if clock in before and clock in after}
    return MedianMove(key[0], key[1], before[JUDGED], after[JUDGED], others, host_ratio)


def _replaying(study: Study, once: Sequence[str]) -> dict[Key, dict[str, float]]:
    """Medians by clock, us, wherever `wall_us` has one."""
    found = {}
    for mode, section in at(study, "modes").items():
        if at(section, "claim").get("replay") in (None, "none"):
            continue
        for phase in ("decode", "prefill"):
            for size, times in at(section, "steady_state", phase).items():
                factorial, by_clock = str(at(times).get("factorial", "")), _by_clock(times)
                if JUDGED in by_clock and factorial not in once:
                    found[mode, f"{phase}/{size}", factorial] = by_clock
    return found


def _by_clock(times: Study) -> dict[str, float]:
    known = {clock: number(at(times, clock).get("median")) for clock in (JUDGED, *OTHERS)}
    return {clock: median_us for clock, median_us in known.items() if median_us}
