"""The modes of the first screen in numbers: the gain, and the price beside it."""

from __future__ import annotations

from dataclasses import replace

from stages.views import words
from stages.views.document import Study, baseline, part
from stages.views.price import held, price, tail_rate
from stages.views.roles import roles
from stages.views.tables.table import Table, dropped_empty, versus


def glance(study: Study) -> Table:
    """One row each for the recommended mode, that of shorter lives, the runner-up and the baseline."""
    rows = [[f"{mode}: {role}", *_numbers(study, mode)] for mode, role in roles(study).items()]
    base, whole = baseline(study), held(study)
    lost = "sequences lost" if whole == words.ABSENT else f"sequences lost of {whole}"
    tails = [f"{tail} TPOT, {words.rate(tail_rate(study, tail))}" for tail in ("p99", "p50")]
    found = dropped_empty(Table("In numbers", ["mode", f"{base} / mode", "ready cold", "ready warm", *tails, "graphs", lost], rows))
    note = f"Sequences lost: how many of those that fit into memory at once with {base} no longer fit with the mode."
    found = replace(found, note=note if lost in found.columns else "")
    unsaid = tails[1] if tails[0] in found.columns else ""
    return found.only([index for index, column in enumerate(found.columns) if column != unsaid])


def _numbers(study: Study, mode: str) -> list[str]:
    sequence, cost = part(study, "modes", mode, "steady_state", "sequence"), price(study, mode)
    return [
        "1" if mode == baseline(study) else versus(sequence),
        *(cost.ready[state] for state in ("cold", "warm")),
        *cost.tpot.values(),
        cost.graphs,
        cost.lost,
    ]
