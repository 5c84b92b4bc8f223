"""A table of words, before any view has escaped them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from stages.views import words
from stages.views.document import dig


@dataclass(frozen=True)
class Table:
    """`columns[0]` heads the row names. `texts` are the columns of prose; the others hold numbers or single words."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    texts: frozenset[str] = field(default_factory=frozenset)

    def numeric(self) -> list[bool]:
        """For each column, whether it is set in figures (aligned to the right)."""
        return [index > 0 and column not in self.texts for index, column in enumerate(self.columns)]

    def only(self, keep: Sequence[int]) -> Table:
        """The table with the columns at these places."""
        rows = [[row[index] for index in keep] for row in self.rows]
        return replace(self, columns=[self.columns[index] for index in keep], rows=rows)


def dropped_empty(table: Table) -> Table:
    """The table without columns that hold nothing but dashes (the first stays)."""
    keep = [index for index in range(len(table.columns)) if index == 0 or any(row[index] not in ("", words.ABSENT) for row in table.rows)]
    return table.only(keep)


def versus(node: Any, interval: bool = True) -> str:
    """`1.84x [1.79, 1.88] faster`: the comparison with the baseline, its interval where there is one, its class.

    Without `interval` in one word: the ratio, or `same` or `undecided` where it says nothing.
    """
    found = dig(node, "vs_baseline")
    if words.number(dig(found, "speedup")) is None:
        return words.ABSENT
    verdict = str(dig(found, "verdict") or "")
    if not interval:
        return verdict if verdict in ("same", "undecided") else words.speedup(found["speedup"])
    return f"{words.speedup(found['speedup'])}{words.interval(dig(found, 'low'), dig(found, 'high'))} {verdict}".strip()


def estimate(node: Any) -> str:
    """A time in us with its interval over sets, or a dash."""
    value, low, high = (words.number(dig(node, key)) for key in ("value", "low", "high"))
    if value is None:
        return words.ABSENT
    scale, unit = words.microsecond_unit(max(abs(found) for found in (value, low, high) if found is not None))
    around = "" if low is None or high is None else f" [{words.plain(low / scale)}, {words.plain(high / scale)}]"
    return f"{words.plain(value / scale, unit)}{around}"


def pairs(node: Mapping[str, Any], show: Any = str) -> str:
    """`a 1, b 2` of a flat object."""
    return ", ".join(f"{key} {show(value)}" for key, value in node.items()) or words.ABSENT
