"""From which lifetime on one mode is the best of all, and which one it overtakes last."""

from __future__ import annotations

from stages.analysis.lifetimes import CACHES
from stages.views import words
from stages.views.document import Study, dig, mode_names, part, sort_numeric, why_not
from stages.views.tables.modes import answer_of
from stages.views.tables.table import Table, dropped_empty


def next_best(study: Study) -> Table:
    """Break-even with every other mode that may be ranked, per arrival rate and cache state."""
    rows = []
    for name in mode_names(study):
        by_rate = {} if why_not(study, name) else part(study, "modes", name, "lifetime", "next_best")
        for rate in sort_numeric(by_rate):
            rows.append([name, words.rate(rate), *(_cell(dig(by_rate, rate, state)) for state in CACHES)])
    note = (
        "The smallest worker lifetime beyond which the mode stays ahead of every other one in useful completions, and the mode that it"
        " overtakes last; “never”: that mode stays ahead."
    )
    columns = ["mode", "arrivals", *(f"from {state}" for state in CACHES)]
    return dropped_empty(Table("Best of all from", columns, rows, note, frozenset({"arrivals"})))


def _cell(found: object) -> str:
    against = dig(found, "against")
    return f"{answer_of(found)} ({against})" if against else answer_of(found)
