"""A small function under the mode: transformed, warmed up and held as a decode step is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from stages.workers.service import Service
from stages.workers.starting import CALLS_BEFORE_CAPTURE


class HeldFunction:
    """The function on static inputs, as the mode repeats it. It keeps the inputs: a capture holds their addresses."""

    def __init__(self, service: Service, function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> None:
        """Two calls, the capture where the mode captures, and a third call. Raises what the mode raises."""
        self.mode, self.inputs = service.mode, inputs
        self.function = self.mode.transformed(function, len(service.steps))
        self.held: Callable[[], Any] = self.call
        for _ in range(CALLS_BEFORE_CAPTURE):
            self.step()
        if self.mode.replay == "manual":
            self.held = self.mode.held(self.call, service.pool)
        self.step()

    def call(self) -> torch.Tensor:
        """One call of the transformed function."""
        return torch.as_tensor(self.function(*self.inputs))

    def step(self) -> torch.Tensor:
        """One step as the mode repeats it; its result, copied."""
        self.mode.before_step()
        return torch.as_tensor(self.held()).clone()


def held_or_refusal(service: Service, function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> tuple[HeldFunction | None, str]:
    """The held function, or None and what the mode refused it with."""
    try:
        return HeldFunction(service, function, *inputs), ""
    except Exception as error:  # noqa: BLE001 - whatever a mode refuses with is its answer
        return None, refusal(error)


def refusal(error: BaseException) -> str:
    """An exception's type and first line."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0][:160]}"


def keeps_python_state(service: Service) -> bool:
    """Whether it is documented that the mode keeps what Python said when it was captured or packaged."""
    mode = service.mode
    return mode.replay == "manual" or (mode.transform == "aot" and mode.replay == "none")
