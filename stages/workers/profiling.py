"""One torch.profiler session over a few calls of every planned shape, reduced to numbers in the worker.

One session a process (CUDA 13.0 mixes correlation ids in later ones), after warm-up, on graphs captured before it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from stages.instruments.nvtx import marked
from stages.instruments.profile_reading import ProfiledCalls, read_profile
from stages.workers.service import Service


def profile_shapes(service: Service, num_calls: int, keep: str = "") -> list[dict[str, Any]]:
    """`ProfiledStep` documents, one a planned shape, averaged over `num_calls` calls. `keep`: a file for the session's trace."""
    service.fill(service.plan.context_tokens // 2, torch.Generator().manual_seed(0))
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if service.device == "cuda" else [])
    service.synchronize()
    with profile(activities=activities) as session:
        for shape in service.shapes():
            for index in range(num_calls):
                with record_function(f"opmode {shape}"), marked(f"{service.mode.name} {shape} call {index}"):
                    service.run(shape)
                    service.synchronize()
    calls = ProfiledCalls.of(session, Path(keep) if keep else None)
    return [step.model_dump() for step in read_profile(calls, service.shapes(), num_calls, service.device)]
