"""What a mode costs, read once for the sentence of the terminal and the table of the pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stages.views import words
from stages.views.document import Study, baseline, dig, headline_choice, part, rates
from stages.views.figures.ladder import STATES
from stages.views.tables.service import sequences_lost


@dataclass(frozen=True)
class Price:
    """Words of one mode, a dash for what was not measured. `ready` by cache state; `tpot` by tail, compiles and captures left in.

    `lost`: concurrent sequences that fit beside the baseline and not beside this mode; a dash for the baseline itself.
    """

    ready: Mapping[str, str]
    graphs: str
    lost: str
    tpot: Mapping[str, str]


def price(study: Study, mode: str) -> Price:
    """Of any mode of the study."""
    node, lost = part(study, "modes", mode), sequences_lost(study, mode)
    pools = words.number(dig(node, "memory", "graph_pool_bytes"))
    return Price(
        ready={state: words.seconds(dig(node, "startup", state, "ready_s")) for state in STATES},
        graphs=words.size(pools) if pools else words.ABSENT,
        lost=words.ABSENT if mode == baseline(study) or lost is None else words.count(max(lost, 0.0)),
        tpot={tail: words.plain(_tpot_ms(study, mode, tail), "ms") for tail in ("p99", "p50")},
    )


def held(study: Study) -> str:
    """Concurrent sequences that fit beside the baseline, or a dash."""
    return words.count(dig(study, "modes", baseline(study), "memory", "max_sequences"))


def _tpot_ms(study: Study, mode: str, tail: str) -> float | None:
    """At the verdict's arrival rate, else at the first that has enough samples."""
    choice = headline_choice(study)
    tried = ([choice[1]] if choice else []) + rates(study)
    found = [words.number(dig(study, "modes", mode, "load", rate, "tpot_ms", tail)) for rate in tried]
    return next((value for value in found if value is not None), None)
