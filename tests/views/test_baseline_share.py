"""How much the baseline path served stands beside the path of a mode and beside its load; older studies have no such column."""

from __future__ import annotations

from typing import Any

from stages.views.tables.proof import paths
from stages.views.tables.service import load
from stages.views.tables.table import Table

COLUMN = "steps by the baseline path"
STEPS = {"num_decode_steps": 50, "num_prefill_steps": 10}
CHOICES = {"arrival_rates": ["recorded"], "lifetimes_s": []}


def study(coverage: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    evidence = {"verdict": "confirmed", "path_counts": {"compiled": 6, "fallback": 2}, "reasons": []}
    mode = {"status": "ok", "claim": {"family": "torch"}, "evidence": evidence, "coverage": coverage, "load": {"recorded": run}}
    return {"baseline": "eager", "choices": CHOICES, "modes": {"eager": mode}, "verdict": {}}


def cell(table: Table) -> str:
    (row,) = table.rows
    return row[list(table.columns).index(COLUMN)]


def test_share_of_steps_is_shown_for_the_walk_and_for_the_load() -> None:
    shown = study({"baseline_share": {"num_steps": 0.25}}, {"request_goodput": 1.0, "num_baseline_steps": 3, **STEPS})
    assert cell(paths(shown)) == "25.0 %"
    assert cell(load(shown)) == "5.0 %"


def test_studies_without_it_have_no_column() -> None:
    older = study({}, {"request_goodput": 1.0, **STEPS})
    assert COLUMN not in [*paths(older).columns, *load(older).columns]
