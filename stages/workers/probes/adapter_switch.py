"""LoRA adapters switched between steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from stages.models.adapters import Adapter, adapter_buffers, random_adapter, switch_adapter
from stages.workers.probes.bench import Bench, admit, answer, difference, forced_decode, random_tokens, relative_error
from stages.workers.probes.probe import Document, Probe, at_least, held_to, held_to_error_rule, not_run

LEAST_DIFFERENCE = 0.01
"""Relative distance between eager's logits under two adapters: below it, a stale one could hide."""


def _run(bench: Bench) -> Iterator[Document]:
    module: Any = bench.service.module
    rows = bench.sizes[-1]
    held = {name: buffer.clone() for name, buffer in adapter_buffers(module).items()}
    if not held:
        yield not_run("adapter_switch", "not applicable: the model takes no adapters")
        return
    before = answer(bench.service, rows)
    adapters = [random_adapter(module, 2 * bench.service.draw + seed) for seed in (1, 2)]
    try:
        yield from _followed(bench, rows, [*adapters, None, adapters[0]])
    finally:
        _switch(bench, held)
    yield held_to("adapter_restored", f"decode/{rows}", difference(answer(bench.service, rows), before), bench.repeat_noise, 1)


def _followed(bench: Bench, rows: int, adapters: list[Adapter | None]) -> Iterator[Document]:
    """One sequence a row; before each decode step another adapter. The error rule, over all steps."""
    for service in bench.trio:
        admit(service, rows, seed=21)
    steps = [_stepped(bench, rows, adapter, step) for step, adapter in enumerate(adapters)]
    trio, subject = (torch.cat(logits) for logits in zip(*steps, strict=True)), f"decode/{rows}"
    yield held_to_error_rule(bench, "adapter_switch", subject, trio, len(steps), "a switch before each step")
    reason = "eager's answers under two adapters: far enough apart to tell a stale one"
    yield at_least("adapters_differ", subject, _distance(bench, rows, adapters[0], adapters[1]), LEAST_DIFFERENCE, 2, reason)


def _stepped(bench: Bench, rows: int, adapter: Adapter | None, step: int) -> list[torch.Tensor]:
    """Logits [rows, v] of the trio's next step under an adapter, in float64."""
    _switch(bench, adapter)
    tokens = random_tokens(bench.service, rows, 30 + step)
    return [forced_decode(service, tokens).double() for service in bench.trio]


def _distance(bench: Bench, rows: int, one: Adapter | None, other: Adapter | None) -> float:
    _switch(bench, one)
    first = answer(bench.eager, rows)
    _switch(bench, other)
    return relative_error(answer(bench.eager, rows), first)


def _switch(bench: Bench, adapter: Adapter | None) -> None:
    """On the module that the mode and eager share, and on the reference's."""
    for module in (bench.service.module, bench.reference.module):
        switch_adapter(module, adapter)  # type: ignore[arg-type]


PROBE = Probe(
    name="adapter_switch",
    hazards=("the adapter of the capture stays (vllm#48941, peft#2611)",),
    about="another LoRA adapter, or none, before every step, against a reference that switches too; then the first state, bit for bit",
    run=_run,
)
