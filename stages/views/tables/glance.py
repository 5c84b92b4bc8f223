"""The modes of the first screen in numbers: the gain, and the price beside it."""

from __future__ import annotations

from dataclasses import replace

from stages.views import words
from stages.views.document import Study, baseline, dig, part
from stages.views.price import held, price
from stages.views.roles import roles
from stages.views.tables.table import Table, dropped_empty, versus


def glance(study: Study) -> Table:
    """One row each for the recommended mode, that of shorter lives, the runner-up and the baseline.

    `timed in` names the factorial of each speed-up where it is not one for all.
    """
    rows = [[f"{mode}: {role}", *_numbers(study, mode)] for mode, role in roles(study).items()]
    base, whole = baseline(study), held(study)
    lost = "sequences lost" if whole == words.ABSENT else f"sequences lost of {whole}"
    columns = ["mode", f"{base} / mode", "ready cold", "ready warm", "p99 TPOT", "p50 TPOT", "graphs", lost, "timed in"]
    found = dropped_empty(Table("In numbers", columns, rows, texts=frozenset({"timed in"})))
    note = f"Sequences lost: how many of those that fit into memory at once with {base} no longer fit with the mode."
    found = replace(found, note=note if lost in found.columns else "")
    unsaid = {"p50 TPOT"} if "p99 TPOT" in found.columns else set()
    unsaid |= {"timed in"} if len({row[-1] for row in rows} - {words.ABSENT}) < 2 else set()
    return found.only([index for index, column in enumerate(found.columns) if column not in unsaid])


def _numbers(study: Study, mode: str) -> list[str]:
    sequence, cost = part(study, "modes", mode, "steady_state", "sequence"), price(study, mode)
    return [
        "1" if mode == baseline(study) else versus(sequence),
        *(cost.ready[state] for state in ("cold", "warm")),
        *cost.tpot.values(),
        cost.graphs,
        cost.lost,
        str(dig(sequence, "vs_baseline", "factorial") or words.ABSENT),
    ]
