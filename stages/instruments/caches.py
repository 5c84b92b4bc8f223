"""What the compile caches did: torch's counters, and the listing of the private cache folder."""

from __future__ import annotations

from pathlib import Path

from stages.core.records.startup import CacheUse


def listing(folder: Path) -> int:
    """Number of files below a cache folder; 0 when it does not exist."""
    return sum(1 for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0


def cache_use(files_before: int, files_after: int) -> CacheUse:
    """Counters of this process (`torch._dynamo.utils.counters`, private) beside the two listings."""
    from torch._dynamo.utils import counters

    inductor, aot = counters["inductor"], counters["aot_autograd"]
    return CacheUse(
        fx_graph_hits=inductor["fxgraph_cache_hit"],
        fx_graph_misses=inductor["fxgraph_cache_miss"],
        fx_graph_bypasses=inductor["fxgraph_cache_bypass"],
        aot_autograd_hits=aot["autograd_cache_hit"],
        aot_autograd_misses=aot["autograd_cache_miss"],
        num_files_before=files_before,
        num_files_after=files_after,
    )
