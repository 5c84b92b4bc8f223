"""What could be gained at most, before anything is compiled or captured: the baseline's bottleneck and its two ceilings.

Replay takes launches and Python away, never kernels: it saves at most wall - busy. Better kernels save at most
busy - floor. Over the plan's steps, each shape weighted by how often it runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stages.analysis.bottleneck import Words, bottleneck
from stages.core.records.path import ProfiledStep

WORTH_SHARE = 0.10  # below it a gain drowns in start-up cost and risk


class Point(NamedTuple):
    """One shape of the baseline: steps of the plan, unprofiled median wall time, its profile, its floor or None."""

    num_steps: int
    wall_us: float
    profile: ProfiledStep
    floor_us: float | None

    @property
    def shape(self) -> str:
        """`decode/8`, `prefill/512`."""
        return f"{self.profile.phase}/{self.profile.size}"

    @property
    def busy_us(self) -> float:
        """Busy time, at most the wall time."""
        return min(self.profile.busy_us, self.wall_us)


class Diagnosis(NamedTuple):
    """Seconds over the plan's steps at the measured shapes; `with_floor` says that every shape's share of `kernels_s` knows its floor.

    Where a floor is not known, all of the busy time stands for what kernels could save: a looser ceiling, never a lower one.
    """

    name: str
    sentence: str
    wall_s: float
    replay_s: float
    kernels_s: float
    with_floor: bool
    advice: str


def diagnosed(points: Sequence[Point], words: Words, can_replay: bool) -> Diagnosis:
    """The diagnosis of a plan. `can_replay`: whether this device type replays at all."""
    assert points, "something must have been measured"
    dominant = max(points, key=lambda point: point.num_steps * point.wall_us)
    entry = bottleneck(dominant.profile, dominant.wall_us, words)
    wall_s = sum(point.num_steps * point.wall_us for point in points) / 1e6
    busy_s = sum(point.num_steps * point.busy_us for point in points) / 1e6
    kernels_s = sum(point.num_steps * max(0.0, point.busy_us - (point.floor_us or 0.0)) for point in points) / 1e6
    return Diagnosis(
        name=entry.name,
        sentence=entry.sentence,
        wall_s=wall_s,
        replay_s=wall_s - busy_s,
        kernels_s=kernels_s,
        with_floor=all(point.floor_us is not None for point in points),
        advice=_advice((wall_s - busy_s) / wall_s, kernels_s / wall_s, can_replay),
    )


def _advice(idle: float, kernels: float, can_replay: bool) -> str:
    """What is worth a try, from shares of wall time; `do not bother` when neither ceiling reaches 10 %."""
    if idle < WORTH_SHARE and kernels < WORTH_SHARE:
        return f"do not bother: no operating mode can save {WORTH_SHARE:.0%}"
    if not can_replay:
        return "no mode replays on this device; measure compile, which can take a part of both"
    if idle >= WORTH_SHARE and kernels >= WORTH_SHARE:
        first, second = ("replay", "compile") if idle >= kernels else ("compile", "replay")
        return f"measure {first} first, then {second}: both ceilings are worth it"
    return "measure replay; do not bother with compile" if idle >= WORTH_SHARE else "measure compile; do not bother with replay"


def lines(found: Diagnosis, can_replay: bool) -> list[str]:
    """The diagnosis as text: the bottleneck, the two ceilings, the advice."""
    replay, kernels = found.replay_s / found.wall_s, found.kernels_s / found.wall_s
    where = "" if can_replay else " (if it could run here)"
    limit, bound = ("at most", "busy - floor") if found.with_floor else ("less than", "it is busy time, how near its floor is not known")
    return [
        f"bottleneck   {found.sentence}",
        f"replay       can save at most {replay:.0%} of {found.wall_s:.3g} s{where}: wall - busy, over the plan's steps",
        f"kernels      can save {limit} {kernels:.0%}: {bound}",
        f"advice       {found.advice}",
    ]
