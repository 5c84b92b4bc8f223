"""What a mode costs, read once for the sentence of the terminal and the table of the pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stages.analysis.lifetimes import CACHES
from stages.views import words
from stages.views.document import Study, baseline, dig, headline_choice, mode_names, part, rates
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
        ready={state: ready(study, mode, state) for state in CACHES},
        graphs=words.size(pools) if pools else words.ABSENT,
        lost=words.ABSENT if mode == baseline(study) or lost is None else words.count(max(lost, 0.0)),
        tpot={tail: words.plain(dig(node, "load", tail_rate(study, tail), "tpot_ms", tail), "ms") for tail in ("p99", "p50")},
    )


def held(study: Study) -> str:
    """Concurrent sequences that fit beside the baseline, or a dash."""
    return words.count(dig(study, "modes", baseline(study), "memory", "max_sequences"))


def ready(study: Study, mode: str, state: str) -> str:
    """The ready time; a start that was not in the cache state that it claims says so."""
    start = dig(study, "modes", mode, "startup", state)
    seconds = words.seconds(dig(start, "ready_s"))
    return f"{seconds} (refuted)" if dig(start, "verdict") == "refuted" and seconds != words.ABSENT else seconds


def tail_rate(study: Study, tail: str) -> str:
    """The verdict's arrival rate, else the first at which a mode has enough samples for this tail; one rate for all modes."""
    choice = headline_choice(study)
    tried = ([choice[1]] if choice else []) + rates(study)
    loads = [part(study, "modes", mode, "load") for mode in mode_names(study)]
    known = [rate for rate in tried if any(words.number(dig(load, rate, "tpot_ms", tail)) is not None for load in loads)]
    return known[0] if known else (tried[0] if tried else "")


def where(study: Study, tail: str) -> str:
    """`at 40 requests/s`, of the tail's arrival rate."""
    return f"at {words.rate(tail_rate(study, tail))}"
