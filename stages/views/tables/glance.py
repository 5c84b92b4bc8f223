"""The modes of the first screen in numbers: the gain, and the price beside it."""

from __future__ import annotations

from stages.views import words
from stages.views.document import Study, baseline, dig, headline_choice, part, rates
from stages.views.roles import roles
from stages.views.tables.service import sequences_lost
from stages.views.tables.table import Table, dropped_empty, versus


def glance(study: Study) -> Table:
    """One row each for the recommended mode, that of shorter lives, the runner-up and the baseline.

    `timed in` names the factorial of each speed-up where it is not one for all.
    """
    rows = [[f"{mode}: {role}", *_numbers(study, mode)] for mode, role in roles(study).items()]
    base = baseline(study)
    held = words.number(dig(study, "modes", base, "memory", "max_sequences"))
    lost = "sequences lost" if held is None else f"sequences lost of {words.count(held)}"
    columns = ["mode", f"{base} / mode", "ready cold", "ready warm", "p99 TPOT", "p50 TPOT", "graphs", lost, "timed in"]
    found = dropped_empty(Table("In numbers", columns, rows, texts=frozenset({"timed in"})))
    unsaid = {"p50 TPOT"} if "p99 TPOT" in found.columns else set()
    unsaid |= {"timed in"} if len({row[-1] for row in rows} - {words.ABSENT}) < 2 else set()
    return found.only([index for index, column in enumerate(found.columns) if column not in unsaid])


def _numbers(study: Study, mode: str) -> list[str]:
    node, lost = part(study, "modes", mode), sequences_lost(study, mode)
    pools = words.number(dig(node, "memory", "graph_pool_bytes"))
    base = mode == baseline(study)
    compared = versus(dig(node, "steady_state", "sequence"))
    return [
        "1" if base else compared,
        *(words.seconds(dig(node, "startup", state, "ready_s")) for state in ("cold", "warm")),
        *(words.plain(_tpot_ms(study, mode, tail), "ms") for tail in ("p99", "p50")),
        words.ABSENT if not pools else words.size(pools),
        words.ABSENT if base or lost is None else words.count(lost) if lost > 0 else "0",
        str(dig(node, "steady_state", "sequence", "vs_baseline", "factorial") or words.ABSENT),
    ]


def _tpot_ms(study: Study, mode: str, tail: str) -> float | None:
    """At the verdict's arrival rate, else at the first that has enough samples; compiles and captures left in."""
    choice = headline_choice(study)
    tried = ([choice[1]] if choice else []) + rates(study)
    found = [words.number(dig(study, "modes", mode, "load", rate, "tpot_ms", tail)) for rate in tried]
    return next((value for value in found if value is not None), None)
