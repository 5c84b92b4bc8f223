"""Captures with a fault that needs CUDA, copied into `stages/modes` of a copied tree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from stages.modes.captured import CapturedEager

Function = Callable[..., Any]


@dataclass(kw_only=True)
class FreedPointer(CapturedEager):
    """The step reads a tensor of its own; with `frees` it is given up once the capture is made, as a local one would be."""

    frees: bool = True

    def transformed(self, function: Function, num_shapes: int) -> Function:
        self.ones = getattr(self, "ones", {})
        if function.__name__ != "decode":
            return function

        def run(tokens: torch.Tensor, *rest: Any) -> Any:
            logits, following = function(tokens, *rest)
            if len(tokens) not in self.ones:
                self.ones[len(tokens)] = torch.ones_like(logits)
            return logits * self.ones[len(tokens)], following

        return run

    def held(self, call: Callable[[], Any], pool: Any) -> Callable[[], Any]:
        replay = super().held(call, pool)
        if self.frees:
            self.ones.clear()
        return replay
