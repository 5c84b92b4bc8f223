"""Whether a start was cold, warm or from an artifact: counters, compiler regions and listings must agree.

Counters alone prove nothing: a cached graph with a missing kernel hits and still compiles for seconds.
"""

from __future__ import annotations

from stages.core.records.startup import CacheUse, Phases, Start, Startup, StartVerdict

_NO_CACHE = ("none", "dynamo")
_COMPILED_AGAIN_S = 1.0
LEAST_TUNING_S = 1.0
MOST_NAMED = 4


def prove(cache: str, use: CacheUse, phases: Phases, transform: str, artifact_bytes: int | None = None) -> tuple[StartVerdict, str]:
    """The verdict on the cache state `cache` that a start claims, and the sentence that says why.

    `refuted`: something happened that the claim excludes (a start that claims warm and compiled). `not_proven`:
    nothing happened that the claim demands.
    """
    if transform in _NO_CACHE:
        touched = use.fx_graph_hits + use.fx_graph_misses
        return ("refuted", f"{touched} look-ups in a graph cache") if touched else ("confirmed", f"{transform} uses no compile cache")
    if cache == "cold":
        return _cold(use)
    worked = [*_compiled(use), *([] if cache == "artifact" else _kernels(use)), *_tuned(phases)]
    if worked:
        return "refuted", f"claims {cache}, but {', '.join(worked)}"
    if artifact_bytes == 0:
        return "refuted", "claims artifact, but torch could not read the artifact"
    if use.fx_graph_hits + use.aot_autograd_hits + use.num_packages_loaded == 0:
        return "not_proven", "no hit in a compile cache was counted"
    return "confirmed", _hits(use, phases)


def judged_again(startup: Startup, transform: str) -> Startup:
    """The starts by today's rule, so that studies of different days are judged alike; what was not confirmed stays as it was."""
    return startup.model_copy(update={"starts": [_judged_again(start, transform) for start in startup.starts]})


def _judged_again(start: Start, transform: str) -> Start:
    verdict, proof = prove(start.cache, start.cache_use, start.phases, transform, start.artifact_bytes)
    if not start.proved or verdict == "confirmed":
        return start
    return start.model_copy(update={"verdict": verdict, "proved": False, "proof": proof})


def _cold(use: CacheUse) -> tuple[StartVerdict, str]:
    sentence = (
        f"{use.num_files_before} files before, {use.fx_graph_misses} misses, {use.fx_graph_hits} hits, {use.num_files_after} files after"
    )
    sentence += f", {use.num_packages_built} packages built" if use.num_packages_built else ""
    if use.num_files_before or use.num_kernels_before or use.fx_graph_hits or use.aot_autograd_hits:
        return "refuted", f"claims cold, but {sentence}"
    made = use.fx_graph_misses or use.num_packages_built
    return ("confirmed" if made and use.num_files_after else "not_proven"), sentence


def _compiled(use: CacheUse) -> list[str]:
    """What a start from filled caches must not have done."""
    counts = {
        "graphs missed": use.fx_graph_misses,
        "graphs bypassed the cache": use.fx_graph_bypasses,
        "graphs compiled": use.num_graphs_compiled,
        "packages built": use.num_packages_built,
    }
    return [f"{count} {what}" for what, count in counts.items() if count]


def _tuned(phases: Phases) -> list[str]:
    return [f"kernels tuned for {phases.autotune_s:.1f} s"] if phases.autotune_s >= LEAST_TUNING_S else []


def _kernels(use: CacheUse) -> list[str]:
    new = max(0, use.num_kernels_after - use.num_kernels_before)
    if not new:
        return []
    named = ", ".join(f"{count} x {name}" for name, count in list(use.new_kernels.items())[:MOST_NAMED])
    return [f"{new} kernels compiled ({named})" if named else f"{new} kernels compiled"]


def _hits(use: CacheUse, phases: Phases) -> str:
    if use.num_packages_loaded:
        loaded = f"{use.num_packages_loaded} packages loaded, none built, in {phases.package_load_s:.2f} s"
        return f"{loaded}, kernels {phases.kernel_compile_s:.2f} s"
    again_s = phases.kernel_compile_s
    again = use.num_kernel_compiles and again_s > _COMPILED_AGAIN_S
    note = ": compiled again, torch's artifacts hold no C++ kernels" if again else ""
    return f"{use.fx_graph_hits} graph hits, {use.aot_autograd_hits} AOT hits, {use.fx_graph_misses} misses, kernels {again_s:.2f} s{note}"
