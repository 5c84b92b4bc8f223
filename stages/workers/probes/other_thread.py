"""The step called from another Python thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import torch

from stages.workers.probes.bench import Bench, answer, difference, relative_error
from stages.workers.probes.held_function import refusal
from stages.workers.probes.probe import Document, Probe, held_to, reported


def _run(bench: Bench) -> Iterator[Document]:
    rows, service = bench.sizes[-1], bench.service
    subject, before = f"decode/{rows}", answer(service, rows)
    found: list[torch.Tensor] = []
    refused: list[str] = []

    def work() -> None:
        try:
            with torch.no_grad():  # a thread has its own
                found.append(answer(service, rows))
        except Exception as error:  # noqa: BLE001 - whatever it is refused with
            refused.append(refusal(error))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    if refused and service.mode.replay == "trees":
        yield reported("other_thread", subject, 0, 1, f"refused: recordings belong to a thread; {refused[0]}")
    elif refused:
        yield held_to("other_thread", subject, float("inf"), bench.repeat_noise, 1, refused[0])
    else:
        yield _same_or_rounded(bench, subject, found[0], before)
    again = difference(answer(service, rows), before)
    yield held_to("back_in_main_thread", subject, again, bench.repeat_noise, 1)


def _same_or_rounded(bench: Bench, subject: str, seen: torch.Tensor, before: torch.Tensor) -> Document:
    """The same bits; or a finding, where a library's state of that thread rounds otherwise and the error rule holds."""
    apart = difference(seen, before)
    if apart > bench.repeat_noise:
        exact = answer(bench.reference, bench.sizes[-1])
        if relative_error(seen, exact) <= bench.error_limit(relative_error(before, exact), len(exact)):
            return reported("other_thread", subject, apart, 1, "another thread rounds otherwise: a finding")
    return held_to("other_thread", subject, apart, bench.repeat_noise, 1)


PROBE = Probe(
    name="other_thread",
    hazards=("state that belongs to the thread of the capture (pytorch#123177)",),
    about="the same answer from a new Python thread, then from the first one again, bit for bit; Trees may refuse the thread",
    run=_run,
)
