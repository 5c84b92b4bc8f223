"""How the time of a cell goes with the speed of its host, as attribution.json and study.json have it."""

from __future__ import annotations

from stages.core.records.base import Document


class HostFollowing(Document):
    """How the time of one cell at one point goes with the host's loop: see `stages.analysis.host_following`.

    `reliability`: of the readings; the slope was divided by it. `num_turns`: what it is from. `set_loop_us`: mean of the loop
    in each set, beside `set_us` of the contrasts.
    """

    elasticity: float
    standard_error: float
    reliability: float
    num_turns: int
    set_loop_us: list[float]
