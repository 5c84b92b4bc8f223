"""Shapes in the order A B A."""

from __future__ import annotations

from collections.abc import Iterator

from stages.workers.probes.bench import Bench, answer, difference
from stages.workers.probes.probe import Document, Probe, held_to, not_run


def _run(bench: Bench) -> Iterator[Document]:
    smallest, largest = bench.sizes[0], bench.sizes[-1]
    if smallest == largest:
        yield not_run("shape_order", "only one decode size is planned")
        return
    for first, second in ((smallest, largest), (largest, smallest)):
        answer(bench.service, first)
        before = answer(bench.service, first)
        answer(bench.service, second)
        again = difference(answer(bench.service, first), before)
        yield held_to("shape_order", f"decode/{first}, {second}, {first}", again, bench.repeat_noise, 3)


PROBE = Probe(
    name="shape_order",
    hazards=("graphs of one pool overwrite each other's memory (pytorch#166975)",),
    about="smallest, largest, smallest again, and the reverse: the same answer both times, bit for bit",
    run=_run,
)
