"""Custom operators of the model that write into inputs without saying so."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from stages.workers.probes.bench import Bench, answer
from stages.workers.probes.probe import Document, Probe, held_to, not_run, reported

OWN = ("aten", "prim", "prims")
COMPILERS = ("inductor", "inductor_autotune", "aot")
NAME = "undeclared_writes"


class Watch(TorchDispatchMode):
    """Compares the inputs of every custom operator before and after its call. `calls`: operator -> calls; `writes`: likewise."""

    def __init__(self) -> None:
        """Nothing seen."""
        super().__init__()  # type: ignore[no-untyped-call]
        self.calls: dict[str, int] = {}
        self.writes: dict[str, int] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Run the operator, and compare."""
        if func.namespace in OWN:
            return func(*args, **(kwargs or {}))
        before = [(value, value.clone()) for value in undeclared(func, args, kwargs or {})]
        result = func(*args, **(kwargs or {}))
        name = str(func)
        self.calls[name] = self.calls.get(name, 0) + 1
        changed = sum(not _same(value, copied) for value, copied in before)
        if changed:
            self.writes[name] = self.writes.get(name, 0) + changed
        return result


def undeclared(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Tensor inputs that the operator's schema does not mark as written."""
    named = zip(func._schema.arguments, args, strict=False)
    given = [*named, *((argument, kwargs[argument.name]) for argument in func._schema.arguments if argument.name in kwargs)]
    promised = [value for argument, value in given if not (argument.alias_info and argument.alias_info.is_write)]
    listed = [one for value in promised for one in (value if isinstance(value, (list, tuple)) else [value])]
    return [one for one in listed if isinstance(one, torch.Tensor)]


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(((one == other) | ((one != one) & (other != other))).all())


def _run(bench: Bench) -> Iterator[Document]:
    watch = Watch()
    with watch:
        answer(bench.eager, bench.sizes[-1])
    if not watch.calls:
        yield not_run(NAME, "not applicable: the model calls no custom operator")
        return
    subject, num_calls = ", ".join(watch.calls), sum(watch.calls.values())
    written = sum(watch.writes.values())
    who = f"inputs written against the schema by {', '.join(watch.writes)}" if watch.writes else "no input written against the schema"
    if bench.service.mode.transform in COMPILERS:
        yield held_to(NAME, subject, written, 0, num_calls, f"{who}; a compiler reorders what it was not told")
    else:
        yield reported(NAME, subject, written, num_calls, f"{who}; nothing here reorders it")


PROBE = Probe(
    name="custom_ops",
    hazards=("a custom operator without the right schema hides a mutation (pytorch#157363)",),
    about="runs eager under a watch that compares every custom operator's inputs before and after; a compiled mode must have none written",
    run=_run,
)
