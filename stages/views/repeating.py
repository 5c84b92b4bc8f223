"""Two runs of one study as Markdown: both tables, and what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stages.analysis.repeat import LARGEST_MOVE, LEAST_COVERED, LEAST_STILL, Repeat
from stages.views import words
from stages.views.figures.waterfall import describe
from stages.views.markdown import escaped
from stages.views.tables.table import Table


@dataclass(frozen=True)
class Repetition:
    """Two runs, the first as A, and what became of their numbers."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    found: Repeat

    def sentences(self) -> list[str]:
        """Both shares, against what they should be."""
        covered, still = self.found.covered, self.found.still
        if covered is None:
            cells = "No cell has two sets of processes in both runs, so there is no interval."
        else:
            cells = (
                f"{sum(cell.is_covered for cell in self.found.cells)} of {len(self.found.cells)} intervals of the difference contain 0"
                f" ({covered:.1%}, wanted {LEAST_COVERED:.0%})."
            )
        if still is None:
            return [cells, "No mode that replays was timed in both runs."]
        medians = (
            f"{sum(median.is_still for median in self.found.medians)} of {len(self.found.medians)} medians of replaying modes moved at most"
            f" {LARGEST_MOVE:.0%} ({still:.1%}, wanted {LEAST_STILL:.0%})."
        )
        return [cells, medians]

    def tables(self) -> list[Table]:
        """What is outside first in both."""
        cells = sorted(self.found.cells, key=lambda cell: cell.is_covered)
        medians = sorted(self.found.medians, key=lambda median: median.is_still)
        shifts = [
            [
                f"{cell.factorial}, {describe(cell.point)}",
                f"{cell.cell}: {cell.mode}",
                f"{cell.ratio:.4f}",
                f"{cell.low:.4f} to {cell.high:.4f}",
                "yes" if cell.is_covered else "no",
            ]
            for cell in cells
        ]
        moves = [
            [median.mode, describe(median.shape), *map(words.microseconds, (median.before_us, median.after_us)), f"{median.move:+.2%}"]
            for median in medians
        ]
        found = [
            Table("Cells", ["factorial, point", "cell", "B / A", "interval", "contains 1"], shifts),
            Table("Medians of replaying modes", ["mode", "step", "A", "B", "move"], moves),
        ]
        return [table for table in found if table.rows]


def as_markdown(repetition: Repetition) -> str:
    """GitHub-flavoured Markdown."""
    title = f"{words.clean(repetition.before.get('name'))} measured twice"
    runs = " and ".join(words.clean(side.get("created_at")) for side in (repetition.before, repetition.after))
    lines = [f"# {escaped(title)}", "", f"A and B: {escaped(runs)}.", "", *(f"- {line}" for line in repetition.sentences()), ""]
    for table in repetition.tables():
        lines += [f"## {table.title}", "", *_rows(table.columns, table.rows), ""]
    return "\n".join(lines)


def _rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    every = [columns, ["---"] * len(columns), *([escaped(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(row)} |" for row in every]
