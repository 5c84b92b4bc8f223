"""warmup/<mode>.json: how long a worker takes until it is ready, from cold and from warm caches."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from stages.core.records.base import Document, Record

StartVerdict = Literal["confirmed", "refuted", "not_proven"]


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
    export_s: float = 0.0
    package_load_s: float = 0.0


class CacheUse(Document):
    """What the compile caches did, from torch's counters and the listing of the cache folder.

    `num_graphs_compiled` and `num_kernel_compiles` count the regions that the main thread entered; kernels compiled in
    a pool show in `num_kernels_after` (files); `new_kernels`: those that came to others, by file name. `num_packages_*`:
    packages compiled ahead of time, made and loaded.
    """

    fx_graph_hits: int = 0
    fx_graph_misses: int = 0
    fx_graph_bypasses: int = 0
    aot_autograd_hits: int = 0
    aot_autograd_misses: int = 0
    aot_autograd_bypasses: int = 0
    num_files_before: int = 0
    num_files_after: int = 0
    num_kernels_before: int = 0
    num_kernels_after: int = 0
    new_kernels: dict[str, int] = Field(default_factory=dict)
    num_graphs_compiled: int = 0
    num_kernel_compiles: int = 0
    num_packages_built: int = 0
    num_packages_loaded: int = 0


class CacheState(Document):
    """Caches that are not the compile cache's folder, as the worker found them when it was ready.

    `remote_caches`: name -> on. `driver_jit_*`: the driver's own folder. `num_major_faults`: pages that this process
    waited for the disk to bring; near 0 says that the operating system's page cache was warm.
    """

    remote_caches: dict[str, bool] = Field(default_factory=dict)
    pgo_job_id: str | None = None
    driver_jit_disabled: bool = False
    driver_jit_files: int = 0
    driver_jit_bytes: int = 0
    num_major_faults: int = 0
    unknown: str = ""


class Start(Document):
    """One start of one worker process. `calls_s`: shape name -> seconds of its first, second and third call.

    `verdict` is on the cache state that the start claims. `pool_s`: compiler regions on other threads of the worker,
    which overlap with the phases.
    """

    cache: Literal["cold", "warm", "artifact"]
    ready_s: float
    unaccounted_s: float
    first_request_s: float
    phases: Phases
    calls_s: dict[str, list[float]]
    cache_use: CacheUse
    proved: bool
    proof: str
    verdict: StartVerdict | None = None
    cache_state: CacheState | None = None
    artifact_bytes: int | None = None
    pool_s: float | None = None
    started_at: str = ""


class MiddleWay(Document):
    """Serve eager while compiling in the same worker, switch when ready. Times in s from spawn, steps in ms.

    `first_served_s`: the first eager step is done. `switched_s`: the first step in the mode is done (less the
    second in which eager was measured alone).
    `longest_gap_s`: longest time without a finished step between the two. `eager_*`: one decode step alone, while
    the compiler runs, and in the mode afterwards. `extra_bytes`: the second set of buffers that compiling needs.
    `num_steps_before`: eager steps served until the switch. `recompiled`: graphs compiled after the switch (0 expected).
    """

    supported: bool
    reason: str = ""
    first_served_s: float | None = None
    switched_s: float | None = None
    longest_gap_s: float | None = None
    switch_gap_s: float | None = None
    eager_alone_ms: float | None = None
    eager_during_ms: float | None = None
    eager_during_p99_ms: float | None = None
    mode_after_ms: float | None = None
    num_steps_before: int = 0
    extra_bytes: int = 0
    recompiled: int = 0


class Startup(Document):
    """All starts of one mode, in the order they were made."""

    starts: list[Start]
    middle_way: MiddleWay | None = None


class WarmupRecord(Record[Startup]):
    """warmup/<mode>.json."""
