"""Modes with one fault each; a test copies this file to stages/modes/planted.py. Their healthy twins are the real modes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stages.modes.compiled import Compiled


@dataclass(kw_only=True)
class WithoutLimit(Compiled):
    """Compiles each shape, at torch's own limit of eight, and lets it fall back in silence."""

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        import torch

        return torch.compile(function, backend=self.backend, dynamic=False)


@dataclass(kw_only=True)
class IgnoredMode(Compiled):
    """Asks Dynamo alone for Inductor's reduce-overhead: torch takes both and ignores the second."""

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        import torch

        return torch.compile(function, backend="eager", mode="reduce-overhead", dynamic=False)


@dataclass(kw_only=True)
class InsideInferenceMode(Compiled):
    """Runs the step in inference mode on tensors that were made outside it."""

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        import torch

        return torch.inference_mode()(super().transformed(function, num_shapes))


@dataclass(kw_only=True)
class ChangesLate(Compiled):
    """After some steps it changes a number that the compiled step has a guard on."""

    steps_before_change: int = 20

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        self.module, self.steps = getattr(function, "__self__"), 0  # noqa: B009 - a bound method's module
        return super().transformed(function, num_shapes)

    def before_step(self) -> None:
        self.steps += 1
        if self.steps == self.steps_before_change:
            self.module.context_tokens -= 1


@dataclass(kw_only=True)
class ClaimsTreesAnywhere(Compiled):
    """Does not say that CUDA graphs need CUDA."""

    def unavailable(self, device: str) -> str:
        return ""


@dataclass(kw_only=True)
class FreshCaches(Compiled):
    """Hands new tensor objects to the step, so that nothing says that the cache keeps its address."""

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        compiled = super().transformed(function, num_shapes)

        def step(*arguments: Any) -> Any:
            return compiled(*[[one.view_as(one) for one in given] if isinstance(given, list) else given for given in arguments])

        return step


@dataclass(kw_only=True)
class SwapsWeights(Compiled):
    """Gives a weight a new address before every step."""

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        self.module = getattr(function, "__self__")  # noqa: B009 - a bound method's module
        return super().transformed(function, num_shapes)

    def before_step(self) -> None:
        super().before_step()
        self.module.norm.weight.data = self.module.norm.weight.data.clone()
