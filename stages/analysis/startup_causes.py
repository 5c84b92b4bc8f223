"""Why a start that claims filled caches worked all the same, where the cause is known."""

from __future__ import annotations

from stages.core.cache_proof import LEAST_TUNING_S
from stages.core.records.startup import Start

TUNED_AGAIN = (
    "every graph came from the cache, yet {seconds:.3g} s went into tuning kernels again: torch 2.11 repeats the coordinate descent of"
    " max-autotune at every start from filled caches (pytorch#172819; later releases read what was found)"
)


def known_cause(start: Start) -> str:
    """A sentence; empty for a start that is as claimed, or whose cause is not known."""
    use, tuning_s = start.cache_use, start.phases.autotune_s
    all_hit = use.fx_graph_hits > 0 and use.fx_graph_misses == use.fx_graph_bypasses == 0
    if start.proved or start.cache == "cold" or not all_hit or tuning_s < LEAST_TUNING_S:
        return ""
    return TUNED_AGAIN.format(seconds=tuning_s)
