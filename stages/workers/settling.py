"""Warm-up by evidence: windows of calls until two consecutive ones agree and nothing compiled, recorded or tuned.

The test is that of pyperf's calibration of warm-ups (the centres of two halves differ by at most 10 %), on windows of a
few calls, with a cap: a shape that does not settle is said to be `not_settled`, and measured all the same.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from stages.instruments.clocks import wall_us
from stages.workers.service import Service

WINDOW_CALLS = 5
MAX_WINDOWS = 8
MAX_SECONDS = 5.0
TOLERANCE = 0.10


def settle(service: Service, shapes: list[str], context_tokens: int) -> list[dict[str, Any]]:
    """Warm every shape up; a document a shape: `shape`, `num_calls`, `settled`, `reason`."""
    service.fill(context_tokens, torch.Generator().manual_seed(0))
    return [_settled(service, shape) for shape in shapes]


def _settled(service: Service, shape: str) -> dict[str, Any]:
    began_s = time.perf_counter()
    windows: list[list[float]] = []
    call = partial(service.run, shape)
    reason = ""
    while len(windows) < MAX_WINDOWS and (time.perf_counter() - began_s < MAX_SECONDS or len(windows) < 2):
        compiled_s = service.instruments["phases"].total_s()
        windows.append([wall_us(call, service.synchronize) for _ in range(WINDOW_CALLS)])
        spent_s = service.instruments["phases"].total_s() - compiled_s
        reason = f"the compiler ran for {spent_s:.3f} s" if spent_s > 0 else disagreement(windows)
        if not reason:
            break
    calls = len(windows) * WINDOW_CALLS
    said = reason and f"not settled after {calls} calls: {reason}"
    return {"shape": shape, "num_calls": calls, "settled": not reason, "reason": said or "two consecutive windows agree"}


def disagreement(windows: Sequence[Sequence[float]]) -> str:
    """Why the last two windows do not agree, or an empty string."""
    if len(windows) < 2:
        return "one window only"
    before, last = (float(np.median(window)) for window in windows[-2:])
    if abs(before - last) <= TOLERANCE * last:
        return ""
    return f"medians of consecutive windows are {before:,.0f} and {last:,.0f} us"
