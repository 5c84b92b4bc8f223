"""The worker's side of a diagnosis: a few blocks of the shapes that matter, one profiled window, the device's ceilings."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from stages.workers.ceilings import measure_ceilings
from stages.workers.profiling import profile_shapes
from stages.workers.service import Service
from stages.workers.timing import time_block

NUM_CALLS = 10
PROFILED_CALLS = 3


def diagnose(service: Service, shapes: list[str], context_tokens: int, budget_s: float) -> dict[str, Any]:
    """Median `wall_us` a shape, `profile` documents, `ceilings`. Shapes come in order of weight; when time is up the rest is left out."""
    began_s = time.monotonic()
    wall_us: dict[str, float] = {}
    for shape in shapes:
        if wall_us and time.monotonic() - began_s > budget_s / 2:
            break
        wall_us[shape] = median(time_block(service, shape, NUM_CALLS, 1, context_tokens)["wall_us"])
    profile = profile_shapes(service, PROFILED_CALLS)
    return {"wall_us": wall_us, "profile": profile, "ceilings": measure_ceilings(service)}
