"""What the compile caches did: torch's counters, the listing of the private cache folder, and every cache beside it."""

from __future__ import annotations

import os
import resource
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stages.core.records.startup import CacheState, CacheUse

KERNEL_SUFFIXES = (".so", ".cubin", ".hsaco", ".fatbin", ".pt2")
MOST_NEW_KERNELS = 12
_ON = ("1", "true", "on")


def listing(folder: Path) -> int:
    """Number of files below a cache folder; 0 when it does not exist."""
    return len(_files(folder))


def kernels(folder: Path) -> frozenset[str]:
    """Compiled kernels below a folder, as paths in it: shared objects, cubins, packages and the like."""
    return frozenset(str(path.relative_to(folder)) for path in _files(folder) if path.suffix in KERNEL_SUFFIXES)


def new_kernels(before: frozenset[str], after: frozenset[str]) -> dict[str, int]:
    """File name -> how many came, the most frequent first; nothing where there was none before (all are new then)."""
    if not before:
        return {}
    return dict(Counter(Path(path).name for path in sorted(after - before)).most_common(MOST_NEW_KERNELS))


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []


def cache_use(
    files: tuple[int, int],
    listed: tuple[frozenset[str], frozenset[str]],
    regions: Mapping[str, int],
    packages: Mapping[str, int] | None = None,
) -> CacheUse:
    """Counters of this process (`torch._dynamo.utils.counters`, private) beside listings before and after.

    `listed`: compiled kernels before and after; `regions`: how often torch entered each timed region; `packages`: what
    the mode counted of packages built and loaded.
    """
    from torch._dynamo.utils import counters

    inductor, aot = counters["inductor"], counters["aot_autograd"]
    return CacheUse(
        fx_graph_hits=inductor["fxgraph_cache_hit"],
        fx_graph_misses=inductor["fxgraph_cache_miss"],
        fx_graph_bypasses=inductor["fxgraph_cache_bypass"],
        aot_autograd_hits=aot["autograd_cache_hit"],
        aot_autograd_misses=aot["autograd_cache_miss"],
        aot_autograd_bypasses=aot["autograd_cache_bypass"],
        num_files_before=files[0],
        num_files_after=files[1],
        num_kernels_before=len(listed[0]),
        num_kernels_after=len(listed[1]),
        new_kernels=new_kernels(*listed),
        num_graphs_compiled=regions.get("fx_codegen_and_compile", 0),
        num_kernel_compiles=regions.get("compile_file", 0),
        num_packages_built=(packages or {}).get("package_built", 0),
        num_packages_loaded=(packages or {}).get("package_loaded", 0),
    )


def cache_state(transform: str) -> CacheState:
    """What else could have made this start warm: remote caches, PGO, the driver's JIT cache, the page cache.

    The page cache is not dropped; `num_major_faults` is how many pages this process had to wait for the disk.
    """
    remote, pgo, unknown = _torch_caches() if transform != "none" else ({}, None, "")
    folder = driver_cache_folder()
    files = _files(folder)
    return CacheState(
        remote_caches=remote,
        pgo_job_id=pgo,
        driver_jit_disabled=os.environ.get("CUDA_CACHE_DISABLE", "") in _ON,
        driver_jit_files=len(files),
        driver_jit_bytes=sum(path.stat().st_size for path in files),
        num_major_faults=resource.getrusage(resource.RUSAGE_SELF).ru_majflt,
        unknown=unknown,
    )


def driver_cache_folder() -> Path:
    """Where the NVIDIA driver keeps what it compiled from PTX (`CUDA_CACHE_PATH`)."""
    return Path(os.environ.get("CUDA_CACHE_PATH") or Path.home() / ".nv" / "ComputeCache")


def _torch_caches() -> tuple[dict[str, bool], str | None, str]:
    """Remote caches by name, the PGO job id, and the names that this torch lacks."""
    import torch._functorch.config as functorch
    import torch._inductor.config as inductor
    import torch.compiler.config as compiler

    wanted: list[tuple[str, Any, str]] = [
        ("fx_graph", inductor, "fx_graph_remote_cache"),
        ("autotune", inductor, "autotune_remote_cache"),
        ("bundled_autotune", inductor, "bundled_autotune_remote_cache"),
        ("aot_autograd", functorch, "enable_remote_autograd_cache"),
    ]
    found = {name: bool(getattr(config, key)) for name, config, key in wanted if hasattr(config, key)}
    missing = [key for _, config, key in wanted if not hasattr(config, key)]
    missing += [] if hasattr(compiler, "job_id") else ["job_id"]
    job = getattr(compiler, "job_id", None)
    return found, None if job is None else str(job), f"not in this torch: {', '.join(missing)}" if missing else ""
