"""The table of planted faults in docs/methodology.md, read back: a value there is one that was measured."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from stages.core.records.correctness import Check
from tests.faults.listed import Listed
from tests.workers.small_study import ROOT

FACTOR, ROUNDING_FACTOR, OF_ROUNDING = 1.1, 2.0, 1e-4
"""Rounding differs from one release and processor to the next, the size of a fault does not: numbers below `OF_ROUNDING` get more room."""
ROW = re.compile(r"^\| ([^|`]+) \| `(\w+)` \| `(\w+)`: (not a number|[-\d.e]+)([^|(]*)\(([-\d.e]+)\)[^|]*\|", re.MULTILINE)


class Row(NamedTuple):
    """Of the table: probe, check, value (None where it is no number), what is counted (empty for a relative error), limit."""

    probe: str
    check: str
    value: float | None
    counted: str
    limit: float


def rows() -> dict[str, Row]:
    """By the fault's words, without what stands in brackets."""
    text = (ROOT / "docs" / "methodology.md").read_text(encoding="utf-8")
    _, _, table = text.partition("| fault | probe | check: value (limit) |")
    found = ROW.findall(table.split("\n\n")[0])
    return {
        words.partition(" (")[0]: Row(probe, check, None if value.startswith("not") else float(value), counted.strip(), float(limit))
        for words, probe, check, value, counted, limit in found
    }


def is_as_documented(fault: Listed, checks: Iterable[Check]) -> bool:
    """Whether the failed check of that name has the table's value and limit (of its shapes the largest, which comes last).

    Counts as they stand, errors within a factor.
    """
    row = rows()[fault.words]
    found = [check for check in checks if (check.probe, check.name, check.verdict) == (row.probe, row.check, "fail")]
    return bool(found) and _agree(found[-1].value, row.value, row.counted) and _agree(found[-1].limit, row.limit, row.counted)


def _agree(seen: float | None, documented: float | None, counted: str) -> bool:
    if seen is None or documented is None or counted or documented == 0:
        return seen == documented
    factor = ROUNDING_FACTOR if documented < OF_ROUNDING else FACTOR
    return documented / factor <= seen <= documented * factor
