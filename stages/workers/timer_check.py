"""Whether the clocks tell the truth: a kernel that spins for a known time, launched and inside a CUDA graph, timed by both.

Run where the steps are timed, in the worker of the first cell and with the functions that time them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import torch

from stages.core.records.steps import Spin, TimerCheck
from stages.instruments.clocks import device_us, wall_us
from stages.workers.fast_host import HOST
from stages.workers.service import Service

SPIN_US = 50_000  # launching and waiting cost 10 to 210 us, which is no fault of a clock: the slower the host, the more
NUM_RUNS = 5
LARGEST_ERROR = 0.01


def check_timers(service: Service) -> dict[str, Any] | None:
    """The `TimerCheck` document; None on a CPU. Raises what Triton raises where it cannot compile."""
    if service.device != "cuda":
        return None
    from stages.instruments.spinning import spin

    spun_ns = torch.zeros(1, dtype=torch.int64, device="cuda")
    launch = partial(spin, SPIN_US, spun_ns)
    HOST.move_to_fast()
    launch()  # compiles
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        launch()
    spins = [_spun("launched", launch, spun_ns), _spun("replayed", graph.replay, spun_ns)]
    return judged(spins).model_dump()


def judged(spins: list[Spin]) -> TimerCheck:
    """`agrees` when both clocks are within 1 % of the kernel's own time in the median, however it came to run."""
    errors = {f"{clock}, {spin.how}": error(getattr(spin, clock), spin.spun_us) for spin in spins for clock in ("device_us", "wall_us")}
    off = [f"{name} is off by {value:.2%}" for name, value in errors.items() if abs(value) > LARGEST_ERROR]
    worst = max(errors.values(), key=abs)
    what = f"a kernel that spins for {SPIN_US / 1e3:g} ms, launched and replayed"
    said = "; ".join(off) or f"both clocks are within {abs(worst):.2%} ({abs(worst) * SPIN_US:.0f} us) of {what}"
    return TimerCheck(agrees=not off, reason=said, spins=spins)


def error(measured_us: list[float], spun_us: list[float]) -> float:
    """Median relative error of the times measured, against those that the kernel counted."""
    return median(measured / spun - 1 for measured, spun in zip(measured_us, spun_us, strict=True))


def _spun(how: str, call: Callable[[], Any], spun_ns: torch.Tensor) -> Spin:
    found = Spin(how=how, spun_us=[], device_us=[], wall_us=[])
    for _ in range(NUM_RUNS):
        found.device_us.append(device_us(call))
        found.wall_us.append(wall_us(call, torch.cuda.synchronize))
        found.spun_us.append(spun_ns.item() / 1e3)
    return found
