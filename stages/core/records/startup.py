"""warmup/<mode>.json: how long a worker takes until it is ready, from cold and from warm caches."""

from __future__ import annotations

from typing import Literal

from stages.core.records.base import Document, Record


class Phases(Document):
    """Exclusive seconds on the worker's main thread between spawn and ready; they sum to `ready_s` less `unaccounted_s`."""

    import_s: float = 0.0
    device_init_s: float = 0.0
    load_s: float = 0.0
    dynamo_s: float = 0.0
    aot_autograd_s: float = 0.0
    inductor_s: float = 0.0
    kernel_compile_s: float = 0.0
    autotune_s: float = 0.0
    record_s: float = 0.0
    capture_s: float = 0.0
    execute_s: float = 0.0


class CacheUse(Document):
    """What the compile caches did, from torch's counters and the listing of the cache folder."""

    fx_graph_hits: int = 0
    fx_graph_misses: int = 0
    fx_graph_bypasses: int = 0
    aot_autograd_hits: int = 0
    aot_autograd_misses: int = 0
    num_files_before: int = 0
    num_files_after: int = 0


class Start(Document):
    """One start of one worker process. `calls_s`: shape name -> seconds of its first, second and third call."""

    cache: Literal["cold", "warm", "artifact"]
    ready_s: float
    unaccounted_s: float
    first_request_s: float
    phases: Phases
    calls_s: dict[str, list[float]]
    cache_use: CacheUse
    proved: bool
    proof: str


class Startup(Document):
    """All starts of one mode, in the order they were made."""

    starts: list[Start]


class WarmupRecord(Record[Startup]):
    """warmup/<mode>.json."""
