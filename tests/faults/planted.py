"""Modes that fail as captures do, emulated on a CPU: copied into `stages/modes` of a copied tree, and two healthy twins.

A fault takes the function that a mode would transform (`decode`, or a sampling step) and gives the broken one.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from stages.modes.base import TRANSFORMS
from stages.modes.eager import Eager

Function = Callable[..., Any]


def healthy(decode: Function) -> Function:
    return lambda *arguments: decode(*arguments)


def stale_token(decode: Function) -> Function:
    """Each call reads the tokens of the call before."""
    held: dict[int, torch.Tensor] = {}

    def run(tokens: torch.Tensor, *rest: Any) -> Any:
        fresh = tokens.clone()
        tokens.copy_(held.get(len(tokens), fresh))
        held[len(tokens)] = fresh
        return decode(tokens, *rest)

    return run


def frozen_position(decode: Function) -> Function:
    """The position does not move on."""

    def run(tokens: torch.Tensor, positions: torch.Tensor, *caches: Any) -> Any:
        before = positions.clone()
        outputs = decode(tokens, positions, *caches)
        positions.copy_(before)
        return outputs

    return run


def position_off_by_one(decode: Function) -> Function:
    def run(tokens: torch.Tensor, positions: torch.Tensor, *caches: Any) -> Any:
        positions.add_(1)
        outputs = decode(tokens, positions, *caches)
        positions.sub_(1)
        return outputs

    return run


def zeroed_cache_slot(decode: Function) -> Function:
    """The first cached token of every sequence is lost."""

    def run(tokens: torch.Tensor, positions: torch.Tensor, keys: Any, values: Any) -> Any:
        for tensor in (*keys, *values):
            tensor[: len(tokens), :, 0] = 0
        return decode(tokens, positions, keys, values)

    return run


def lost_cache_write(decode: Function) -> Function:
    """What a step writes to the cache is gone after it."""

    def run(tokens: torch.Tensor, positions: torch.Tensor, keys: Any, values: Any) -> Any:
        before = [tensor.clone() for tensor in (*keys, *values)]
        outputs = decode(tokens, positions, keys, values)
        for tensor, old in zip((*keys, *values), before, strict=True):
            tensor.copy_(old)
        return outputs

    return run


def output_overwritten(decode: Function) -> Function:
    """One output buffer a size, written by every call."""
    buffers: dict[int, torch.Tensor] = {}

    def run(tokens: torch.Tensor, *rest: Any) -> Any:
        logits, following = decode(tokens, *rest)
        return buffers.setdefault(len(tokens), torch.empty_like(logits)).copy_(logits), following

    return run


def padding_leak(decode: Function) -> Function:
    """A little of the last row, real or not, gets into all others."""

    def run(*arguments: Any) -> Any:
        logits, following = decode(*arguments)
        return logits + 1e-7 * logits[-1:], following

    return run


def weights_swapped(decode: Function) -> Function:
    """The weights of the capture are read for ever."""
    captured: list[Any] = []

    def run(*arguments: Any) -> Any:
        if not captured:
            captured.append(copy.deepcopy(decode.__self__))  # type: ignore[attr-defined]
        return captured[0].decode(*arguments)

    return run


def captured_inputs(decode: Function) -> Function:
    """The tensors of the first call of a size are read for ever."""
    captured: dict[int, tuple[Any, ...]] = {}

    def run(tokens: torch.Tensor, *rest: Any) -> Any:
        return decode(*captured.setdefault(len(tokens), (tokens, *rest)))

    return run


def cache_of_its_own(decode: Function) -> Function:
    """The cache is copied once a size, as a capture over copied inputs would; later prompts are not in it."""
    captured: dict[int, tuple[Any, Any]] = {}

    def run(tokens: torch.Tensor, positions: torch.Tensor, keys: Any, values: Any) -> Any:
        mine = captured.setdefault(len(tokens), (copy.deepcopy(keys), copy.deepcopy(values)))
        return decode(tokens, positions, *mine)

    return run


def shared_pool(decode: Function) -> Function:
    """The first step after another size reads what that size left behind."""
    last: list[int] = [0]

    def run(tokens: torch.Tensor, *rest: Any) -> Any:
        logits, following = decode(tokens, *rest)
        is_dirty, last[0] = last[0] not in (0, len(tokens)), len(tokens)
        return logits * (1 + 1e-6 * is_dirty), following

    return run


def uneven_calls(decode: Function) -> Function:
    """Every third call rounds differently, by far more than rounding."""
    count = [0]

    def run(*arguments: Any) -> Any:
        count[0] += 1
        logits, following = decode(*arguments)
        return (logits * 1.01 if count[0] % 3 == 0 else logits), following

    return run


def tokens_cut_short(decode: Function) -> Function:
    """The last row is computed as the first."""

    def run(tokens: torch.Tensor, *rest: Any) -> Any:
        logits, following = decode(tokens, *rest)
        return torch.cat((logits[:-1], logits[:1])), following

    return run


def generator_not_registered(sample: Function) -> Function:
    """Every replay draws the numbers of the capture."""

    def run(logits: torch.Tensor) -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return sample(logits)

    return run


def generator_of_its_own(sample: Function) -> Function:
    """Numbers from a generator that no seed resets."""
    generator = torch.Generator().manual_seed(0)

    def run(logits: torch.Tensor) -> Any:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**31, (1,), generator=generator)))
            return sample(logits)

    return run


def mutates_twice(decode: Function) -> Function:
    """What the warm-up wrote is written again: each call is two steps."""

    def run(*arguments: Any) -> Any:
        decode(*arguments)
        return decode(*arguments)

    return run


def output_read_back(decode: Function) -> Function:
    """A step reads the output buffer of the step before."""
    last: dict[int, torch.Tensor] = {}

    def run(tokens: torch.Tensor, *rest: Any) -> Any:
        logits, following = decode(tokens, *rest)
        last[len(tokens)] = logits + 0 * last.get(len(tokens), logits)
        return last[len(tokens)], following

    return run


def stale_adapter(decode: Function) -> Function:
    """The adapter of the first call is read for ever; weights are followed."""
    captured: list[Any] = []

    def run(*arguments: Any) -> Any:
        if not captured:
            module = decode.__self__  # type: ignore[attr-defined]
            captured.append(copy.deepcopy(module, {id(weight): weight for weight in module.parameters()}))
        return captured[0].decode(*arguments)

    return run


def weights_by_pointer(decode: Function) -> Function:
    """The addresses of the first call's weights are read for ever."""
    captured: list[torch.Tensor] = []

    def run(*arguments: Any) -> Any:
        weights = list(decode.__self__.parameters())  # type: ignore[attr-defined]
        captured.extend(weight.data for weight in weights[len(captured) :])
        present = [weight.data for weight in weights]
        _point(weights, captured)
        try:
            return decode(*arguments)
        finally:
            _point(weights, present)

    return run


def _point(weights: list[Any], places: list[torch.Tensor]) -> None:
    for weight, place in zip(weights, places, strict=True):
        weight.data = place


def attribute_frozen(choose: Function) -> Function:
    """Attributes stay what they were at the first call."""
    captured: list[Any] = []

    def run(*arguments: Any) -> Any:
        if not captured:
            captured.append(copy.copy(choose.__self__))  # type: ignore[attr-defined]
        return captured[0].choose(*arguments)

    return run


def captured_branch(function: Function) -> Function:
    """The operators of the first call of a size are recorded and run for ever: its branch on data with them."""
    from torch.fx.experimental.proxy_tensor import make_fx

    captured: dict[int, Any] = {}

    def run(*arguments: Any) -> Any:
        size = len(arguments[0])
        if size not in captured:
            held = copy.deepcopy(arguments)  # tracing runs the operators
            captured[size] = make_fx(lambda *given: function(*given), _error_on_data_dependent_ops=False)(*held)
        return captured[size](*arguments)

    return run


def host_work_elided(best: Function) -> Function:
    """The Python of a step runs twice and never again."""
    calls = [0]

    def run(*arguments: Any) -> Any:
        calls[0] += 1
        return best(*arguments) if calls[0] < 3 else arguments[0].topk(1).values

    return run


def bound_to_its_thread(decode: Function) -> Function:
    """Another thread reads state that it does not have."""
    own = threading.current_thread()

    def run(*arguments: Any) -> Any:
        logits, following = decode(*arguments)
        return (logits if threading.current_thread() is own else logits * 0), following

    return run


def package_of_planned_sizes(decode: Function) -> Function:
    """Built for one and four rows, takes any: rows past the first of another batch are what memory held."""

    def run(tokens: torch.Tensor, *rest: Any) -> Any:
        logits, following = decode(tokens, *rest)
        return (logits if len(tokens) in (1, 4) else logits[:1].expand_as(logits).contiguous()), following

    return run


def wrong_when_busy(decode: Function) -> Function:
    """From the fifth step of several sequences on, their tokens are not the best ones."""
    calls = [0]

    def run(tokens: torch.Tensor, *rest: Any) -> Any:
        logits, following = decode(tokens, *rest)
        calls[0] += len(tokens) > 1
        if calls[0] > 4:
            tokens.copy_(logits.argmin(dim=-1))
        return logits, following

    return run


TARGETS = {
    "generator_not_registered": "sample",
    "generator_of_its_own": "sample",
    "attribute_frozen": "choose",
    "captured_branch": "branch",
    "host_work_elided": "best",
}
"""The function that a fault is for, where it is not `decode`."""


@dataclass(kw_only=True)
class Planted(Eager):
    """Eager with one fault. With `replay: manual` outputs are static, as those of a sound capture are."""

    fault: str = "healthy"
    replays: ClassVar[tuple[str, ...]] = ("none", "manual")

    def transforms(self) -> tuple[str, ...]:
        """Any claim: probes read what a mode says that it is."""
        return TRANSFORMS

    def unavailable(self, device: str) -> str:
        """An emulation runs anywhere."""
        return ""

    def transformed(self, function: Function, num_shapes: int) -> Function:
        """The fault, on the function that it is for."""
        wrap: Callable[[Function], Function] = globals()[self.fault]
        return wrap(function) if function.__name__ == TARGETS.get(self.fault, "decode") else function

    def held(self, call: Callable[[], Any], pool: Any) -> Callable[[], Any]:
        """Run again into the same outputs, which are what a replay gives."""
        static = call()

        def replay() -> Any:
            for buffer, value in zip(_tensors(static), _tensors(call()), strict=True):
                buffer.copy_(value)
            return static

        return replay


def _tensors(outputs: Any) -> tuple[torch.Tensor, ...]:
    return (outputs,) if isinstance(outputs, torch.Tensor) else tuple(outputs)
