"""The middle way: a worker serves eager while another of its threads compiles, and switches when that is ready.

Compiling runs the steps that it compiles, so it needs a second set of buffers; the compiled functions then work on
the buffers that serve. Captures of the `manual` kind come at the switch, because a capture forbids other work on the
device. Python threads share one interpreter lock: what compiling takes from the eager steps is measured here.
"""

from __future__ import annotations

import contextvars
import itertools
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median
from typing import Any

import torch

from stages.core.build import build
from stages.core.records.startup import MiddleWay
from stages.core.service_levels import tails
from stages.instruments.absent_device import own_stand_in
from stages.instruments.compile_phases import CompilePhases
from stages.workers.service import Service
from stages.workers.starting import CALLS_BEFORE_CAPTURE

ALONE_S = 1.0


class Compiling(threading.Thread):
    """Run every planned shape on a copy of the service until nothing compiles any more.

    Importing the compiler, which takes seconds, is part of it. `copy`: the copy, once made; `error`: what it broke with.
    """

    def __init__(self, make: Callable[[], Service], phases: CompilePhases, num_threads: int) -> None:
        """`make`: the copy. The thread takes over torch's configuration of the one that makes it."""
        super().__init__(name="compiling", daemon=True)
        own_stand_in()
        self.make, self.phases, self.num_threads = make, phases, num_threads
        self.copy: Service | None = None
        self.error = ""
        self._context = contextvars.copy_context()  # torch's configuration is kept by context

    def run(self) -> None:
        """Compile; an error ends the thread and is kept."""
        self._context.run(self._compile)

    def _compile(self) -> None:
        torch.set_num_threads(self.num_threads)  # both are kept by thread
        torch.set_grad_enabled(False)
        try:
            self.phases.install()
            copy = self.make()
            for shape in copy.shapes():
                for _ in range(CALLS_BEFORE_CAPTURE):
                    copy.run(shape)
            copy.mode.warmed_up()
            copy.synchronize()
        except Exception as error:  # noqa: BLE001 - whatever a mode breaks with is its answer
            self.error = f"{type(error).__name__}: {str(error).strip()[:600]}"
        else:
            self.copy = copy


def switch(service: Service, mode: Mapping[str, Any], precision: str, num_threads: int, spawned_s: float) -> dict[str, Any]:
    """Serve eager decode steps, compile `mode` meanwhile, switch, serve again; a MiddleWay document.

    `service` is eager and ready. `spawned_s`: the parent's monotonic clock when it spawned this worker.
    """
    target = build(mode, "mode")
    if target.replay not in ("none", "manual"):
        why = "not measured: CUDAGraph Trees keep recordings by thread, so the serving thread would record again"
        return MiddleWay(supported=False, reason=why).model_dump()
    phases, serving = CompilePhases(), Serving(service)
    alone_ms = serving.serve_for(ALONE_S)
    make = partial(Service, service.module, service.model, target, service.plan, service.device, precision)
    compiling = Compiling(make, phases, num_threads)
    began_s = time.monotonic()
    compiling.start()
    during_ms = serving.serve_while(compiling)
    copy = compiling.copy
    if copy is None:
        return MiddleWay(supported=False, reason=compiling.error).model_dump()
    compiled_before = phases.regions["entire_frame_compile"]
    adopt(service, copy)
    serving.serve_one()
    ended_s = serving.ends_s
    gaps = [after - before for before, after in itertools.pairwise(ended_s) if after > began_s]
    return MiddleWay(
        supported=True,
        switched_s=ended_s[-1] - spawned_s - sum(alone_ms) / 1e3,
        longest_gap_s=max(gaps),
        switch_gap_s=gaps[-1],
        eager_alone_ms=median(alone_ms),
        eager_during_ms=median(during_ms),
        eager_during_p99_ms=tails(during_ms)[1],
        mode_after_ms=median(serving.serve_for(ALONE_S)),
        num_steps_before=len(during_ms),
        extra_bytes=sum(tensor.numel() * tensor.element_size() for tensor in (*copy.keys, *copy.values)),
        recompiled=phases.regions["entire_frame_compile"] - compiled_before,
    ).model_dump()


def adopt(service: Service, compiled: Service) -> None:
    """Let a service run the functions that another one compiled, on its own buffers; captures are made here."""
    service.mode, service.steps = compiled.mode, {}
    service.adopt_functions(compiled)
    compiled.mode.transformed(service.module.decode, len(service.shapes()))  # torch's configuration, in this context too
    for shape in service.shapes():
        service.steps[shape] = service.call(shape)
        if service.mode.replay == "manual":
            for _ in range(CALLS_BEFORE_CAPTURE):
                service.run(shape)
            service.synchronize()
            service.hold(shape)
    service.synchronize()


class Serving:
    """Decode steps one after the other, each until its tokens are on the host. `ends_s`: when each one was done."""

    def __init__(self, service: Service) -> None:
        """Serve the largest planned decode batch, every sequence at the middle of its slot."""
        self.service, self.ends_s = service, list[float]()
        self.batch = service.plan.capture_sizes[-1]

    def serve_one(self) -> float:
        """One step; its ms."""
        began_s = time.monotonic()
        if len(self.ends_s) % (self.service.plan.context_tokens // 2) == 0:
            self.service.fill(self.service.plan.context_tokens // 2, torch.Generator().manual_seed(0))
        self.service.decode(self.batch)
        self.service.read_tokens(self.batch)
        self.ends_s.append(time.monotonic())
        return 1e3 * (self.ends_s[-1] - began_s)

    def serve_for(self, seconds: float) -> list[float]:
        """Steps for a while; the ms of each."""
        until_s, found = time.monotonic() + seconds, list[float]()
        while time.monotonic() < until_s:
            found.append(self.serve_one())
        return found

    def serve_while(self, thread: threading.Thread) -> list[float]:
        """Steps until the thread ends, at least one; the ms of each."""
        found = [self.serve_one()]
        while thread.is_alive():
            found.append(self.serve_one())
        return found
