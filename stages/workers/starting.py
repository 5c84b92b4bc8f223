"""From spawn to ready, with every second on the main thread given to one phase (the startup ladder).

Ready means: every planned shape has run often enough that the next call neither compiles, records nor tunes. That
takes three calls: with CUDAGraph Trees the first warms up, the second records, the third is the first replay.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from stages.workers.fitting import instruments_for, mode_for

CALLS_BEFORE_CAPTURE = 2

Listed = tuple[int, frozenset[str]]


def start_service(order: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Build the service that the order describes and make it ready; the service and its startup report (JSON)."""
    cache = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    before = _listed(cache)
    import torch

    from stages.core.composed import typed_settings
    from stages.core.records.plan import Plan

    settings = typed_settings(order["settings"], "order")
    torch.set_num_threads(settings.launch.num_threads)
    torch.set_grad_enabled(False)
    torch.manual_seed(settings.seed)
    instruments = instruments_for(settings.mode, bool(order["proof"]))
    mode = mode_for(settings.mode, instruments)
    artifact_bytes = _load_artifact(mode, order.get("artifact"))
    imported_s = time.monotonic()
    _initialise(settings.device)
    initialised_s = time.monotonic()
    service = _load(settings, mode, Plan.model_validate(order["plan"]))
    service.instruments = instruments
    loaded_s = time.monotonic()
    calls_s, capture_s = _make_ready(service)
    ready_s = time.monotonic()
    first_token_s = _first_request(service)
    spawned_s = float(order["spawned_s"])
    compile_s = dict(instruments["phases"].seconds)
    in_calls_s = sum(sum(calls) for calls in calls_s.values()) + capture_s
    phases = {
        "import_s": imported_s - spawned_s,
        "device_init_s": initialised_s - imported_s,
        "load_s": loaded_s - initialised_s,
        "capture_s": capture_s,
        "execute_s": max(0.0, in_calls_s - capture_s - sum(compile_s.values())),
        **compile_s,
    }
    return service, {
        "ready_s": ready_s - spawned_s,
        "first_request_s": first_token_s - spawned_s,
        "phases": phases,
        "calls_s": calls_s,
        "cache_use": _cache_use(mode, cache, before, instruments["phases"].regions),
        "cache_state": _cache_state(settings.mode["transform"]),
        "artifact_bytes": artifact_bytes,
        "pool_s": instruments["phases"].pool_s,
        "missing": instruments["phases"].missing,
        "parameters": sum(parameter.numel() for parameter in service.module.parameters()),
    }


def save_artifacts(service: Any, file: str) -> int:
    """Write what this process compiled to `file`; its bytes (0: nothing to save)."""
    content: bytes | None = service.mode.artifact()
    if content is None:
        return 0
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_bytes(content)
    return len(content)


def _initialise(device: str) -> None:
    import torch

    torch.zeros(1, device=device).add_(1).item()


def _load(settings: Any, mode: Any, plan: Any) -> Any:
    from stages.core.build import build
    from stages.workers.service import Service

    model = build(settings.model, "model")
    module = model.load(settings.device, settings.precision)
    service = Service(module, model, mode, plan, settings.device, settings.precision)
    if mode.transform not in ("none", "aot") or mode.replay != "none":  # a package takes its inputs as they come
        from stages.instruments.static_inputs import declare_static

        declare_static(service.static_tensors())
    service.synchronize()
    return service


def _make_ready(service: Any) -> tuple[dict[str, list[float]], float]:
    """Three calls a shape, the capture (if the mode captures) before the third. Seconds of calls, and of captures."""
    calls_s: dict[str, list[float]] = {}
    capture_s = 0.0
    graph_memory = service.instruments.get("graph_memory")
    for shape in service.shapes():
        run, calls_s[shape] = partial(service.run, shape), []
        for index in range(CALLS_BEFORE_CAPTURE):
            if graph_memory and index == CALLS_BEFORE_CAPTURE - 1:  # with Trees, the recording
                graph_memory.begin()
            calls_s[shape].append(_timed(run, service))
        if service.mode.replay == "manual":
            capture_s += _timed(partial(service.hold, shape), service)
        calls_s[shape].append(_timed(run, service))
        if graph_memory:
            graph_memory.end(shape)
    service.mode.warmed_up()
    return calls_s, capture_s


def _timed(work: Any, service: Any) -> float:
    began_s = time.monotonic()
    work()
    service.synchronize()
    return time.monotonic() - began_s


def _first_request(service: Any) -> float:
    """Serve one prompt; the moment its first token is on the host."""
    from stages.workers.service import random_prompts

    service.prefill(0, random_prompts(service, [service.plan.prompt_sizes[0]], seed=0)[0])
    service.read_tokens(1)
    return time.monotonic()


def _load_artifact(mode: Any, file: str | None) -> int | None:
    """Fill the caches from an artifact; its bytes, 0 when it could not be read, None without one."""
    if not file:
        return None
    content = Path(file).read_bytes()
    return len(content) if mode.load_artifact(content) else 0


def _cache_use(mode: Any, cache: Path, before: Listed, regions: Mapping[str, int]) -> dict[str, Any]:
    from stages.core.records.startup import CacheUse

    after = _listed(cache)
    files, kernels = (before[0], after[0]), (before[1], after[1])
    if mode.transform == "none":
        return CacheUse(num_files_before=files[0], num_files_after=files[1]).model_dump()
    from stages.instruments.caches import cache_use

    return cache_use(files, kernels, regions, mode.counts()).model_dump()


def _cache_state(transform: str) -> dict[str, Any]:
    from stages.instruments.caches import cache_state

    return cache_state(transform).model_dump()


def _listed(cache: Path) -> Listed:
    """How many files the Inductor cache has, and the compiled kernels of all caches beside it."""
    from stages.instruments.caches import kernels, listing

    return listing(cache), kernels(cache.parent)
