"""Modes with one fault each; a test copies this file to stages/modes/planted.py. Their healthy twins are the real modes."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from stages.modes.captured import CapturedEager
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
class Late:
    """Counts steps, and makes one change at a given one."""

    steps_before_change: int = 20

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        self.module, self.steps = getattr(function, "__self__"), 0  # noqa: B009 - a bound method's module
        return super().transformed(function, num_shapes)

    def before_step(self) -> None:
        self.steps += 1
        if self.steps == self.steps_before_change:
            self.change()


@dataclass(kw_only=True)
class ChangesLate(Late, Compiled):
    """After some steps it changes a number that the compiled step has a guard on."""

    def change(self) -> None:
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
    """Gives a weight an address that it never had before every step, as a server that swaps whole checkpoints."""

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        self.module, self.storages = getattr(function, "__self__"), []  # noqa: B009 - a bound method's module
        return super().transformed(function, num_shapes)

    def before_step(self) -> None:
        super().before_step()
        self.storages.append(self.module.norm.weight.data)  # kept, or the allocator hands the address out again
        self.module.norm.weight.data = self.module.norm.weight.data.clone()


@dataclass(kw_only=True)
class CopiesWeights(SwapsWeights):
    """The healthy twin: the new weight is copied into the address that it has."""

    def before_step(self) -> None:
        Compiled.before_step(self)
        self.module.norm.weight.copy_(self.module.norm.weight.clone())


@dataclass(kw_only=True)
class PointsAtAdapters(Compiled):
    """Switches adapters by giving the layers other tensors, not by copying into the ones that they have."""

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        from stages.workers import adapter_bank

        adapter_bank.switch_adapter = pointed_at
        return super().transformed(function, num_shapes)


def pointed_at(module: Any, adapter: Any, scale: float = 1.0) -> None:
    """`switch_adapter` as it should not be."""
    for name, tensor in adapter.items():
        layer, _, part = name.rpartition(".")
        setattr(module.get_submodule(layer), part, tensor)


@dataclass(kw_only=True)
class CompilesTheCopy(Compiled):
    """Compiles only what no CUDA graph can hold, a copy to the host; the step itself stays eager."""

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        fetched = super().transformed(lambda logits: logits.cpu(), num_shapes)

        def step(*arguments: Any) -> Any:
            logits, following = function(*arguments)
            fetched(logits)
            return logits, following

        return step


@dataclass(kw_only=True)
class OnAnotherThread(Compiled):
    """Calls the compiled step from a thread of its own, as a server with an executor does."""

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        compiled = super().transformed(function, num_shapes)
        executor = ThreadPoolExecutor(1)
        return lambda *arguments: executor.submit(compiled, *arguments).result()


@dataclass(kw_only=True)
class CapturesSmall(CapturedEager):
    """Captures no decode batch above 1 and runs larger ones eagerly, as engines do past their largest captured size."""

    def held(self, call: Callable[[], Any], pool: Any) -> Callable[[], Any]:
        self.num_held = getattr(self, "num_held", 0) + 1
        return call if self.num_held == 2 else super().held(call, pool)  # prompts first, then the largest batch


@dataclass(kw_only=True)
class ScalesLate(Late, CapturedEager):
    """Changes a number that the step reads, after the step was captured."""

    steps_before_change: int = 12  # ready after ten

    def change(self) -> None:
        type(self.module).scale = 2.0


@dataclass(kw_only=True)
class OtherAttention(Compiled):
    """Lets scaled_dot_product_attention choose another backend than every other mode has."""

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        from torch.nn.attention import SDPBackend, sdpa_kernel

        step = super().transformed(function, num_shapes)

        def chosen(*arguments: Any) -> Any:
            with sdpa_kernel([SDPBackend.MATH]):
                return step(*arguments)

        return chosen


@dataclass(kw_only=True)
class OffByOnePercent(Compiled):
    """Gives logits that are 1 % too large."""

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        step = super().transformed(function, num_shapes)

        def scaled(*arguments: Any) -> Any:
            logits, following = step(*arguments)
            return logits * 1.01, following

        return scaled


@dataclass(kw_only=True)
class Sleeps(Compiled):
    """Waits before each step."""

    def before_step(self) -> None:
        time.sleep(0.01)
