"""Weights changed after the mode was ready: in place, from a state dict, and by pointer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from stages.workers.probes.bench import Bench, answer, copy_weights, difference
from stages.workers.probes.held_function import refusal
from stages.workers.probes.probe import Document, Probe, held_to, held_to_error_rule


def _run(bench: Bench) -> Iterator[Document]:
    """Every weight is rolled by one row, and rolled back: the size of numbers stays, the answer does not."""
    rows, module = bench.sizes[-1], bench.service.module
    before = answer(bench.service, rows)
    _roll(module, 1)
    _told(bench)
    yield _followed(bench, "weights_copied", rows, "copy_")
    _load_rolled(module, -1)
    _told(bench)
    yield _restored(bench, "weights_loaded", before, "load_state_dict")
    yield _by_pointer(bench, rows)
    yield _restored(bench, "weights_restored", before, "the old storage again")


def _restored(bench: Bench, name: str, before: torch.Tensor, how: str) -> Document:
    """The old weights give the old answer."""
    rows = bench.sizes[-1]
    return held_to(name, f"decode/{rows}", difference(answer(bench.service, rows), before), bench.repeat_noise, 1, how)


def _followed(bench: Bench, name: str, rows: int, how: str) -> Document:
    """The mode's error against the reference, which has the new weights, under the rule for logits."""
    return held_to_error_rule(bench, name, f"decode/{rows}", (answer(service, rows) for service in bench.trio), 1, how)


def _by_pointer(bench: Bench, rows: int) -> Document:
    """New storage behind each parameter. A capture of ours holds the old address, as documented: reported, not required.

    Trees compare the addresses of parameters at every call and record again, or refuse.
    """
    module = bench.service.module
    old = [parameter.data for parameter in module.parameters()]
    try:
        for parameter in module.parameters():
            parameter.data = parameter.data.roll(1, 0)
        _told(bench)
        found = _followed_or_refused(bench, rows)
    finally:
        for parameter, data in zip(module.parameters(), old, strict=True):
            parameter.data = data
        _told(bench)
    if bench.service.mode.replay != "manual":
        return found
    meaning = "the new weights were read" if found["verdict"] == "pass" else "stale: a replay reads the old address"
    return found | {"verdict": "reported", "limit": None, "reason": f"parameter.data = new storage; {meaning}"}


def _followed_or_refused(bench: Bench, rows: int) -> Document:
    try:
        return _followed(bench, "weights_by_pointer", rows, "parameter.data = new storage")
    except RuntimeError as error:
        if bench.service.mode.replay != "trees":
            raise
        return held_to("weights_by_pointer", f"decode/{rows}", 0, 0, 1, f"refused: {refusal(error)}")


def _told(bench: Bench) -> None:
    """The mode may load its weights again; the reference gets them."""
    bench.service.mode.weights_changed()
    copy_weights(bench.service.module, bench.reference.module)


def _roll(module: Any, shift: int) -> None:
    for parameter in module.parameters():
        parameter.copy_(parameter.roll(shift, 0))


def _load_rolled(module: Any, shift: int) -> None:
    module.load_state_dict({name: value.roll(shift, 0) for name, value in module.state_dict().items()})


PROBE = Probe(
    name="updated_weights",
    hazards=("weights swapped under a capture (peft#2611, vllm#48941, sglang#27140)",),
    about="follows new weights by copy_ and, but for captures of ours, by pointer; load_state_dict of the old ones gives the old answer",
    run=_run,
)
