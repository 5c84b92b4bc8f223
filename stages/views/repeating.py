"""Two runs of one study as Markdown: both tables, and what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from stages.analysis.equal_host import EqualHost
from stages.analysis.repeat import LEAST_COVERED, LEAST_STILL, Place, Repeat
from stages.analysis.repeat_medians import LARGEST_MOVE, OTHERS
from stages.views import words
from stages.views.figures.waterfall import describe
from stages.views.markdown import escaped
from stages.views.tables.table import Table

MOST_NAMED = 8
_EQUAL = ["host's loop B / A", "elasticity", "B / A at equal host speed", "its interval"]
_CLOCKS = dict(zip(OTHERS, ("by device events", "in bursts"), strict=True))


@dataclass(frozen=True)
class Repetition:
    """Two runs, the first as A, and what became of their numbers."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    found: Repeat

    def sentences(self) -> list[str]:
        """What was measured twice and where, and both shares, against what they should be."""
        return [*self._places(), self._cells(), self._medians(), *self._as_measured(), *self._other_clocks()]

    def _places(self) -> list[str]:
        said = [f"{name}: {_where(*places)}." for name, places in self.found.places.items()]
        return said + [f"{name}: measured once, both studies hold the same record; not compared." for name in self.found.once]

    def _cells(self) -> str:
        found, share = self.found, self.found.covered
        if share is None:
            return "No cell has two sets of processes in both runs, so there is no interval: measure two sets or more."
        what = f"intervals of the difference contain 0{_where_equal([cell.equal for cell in found.cells])}"
        return _counted([cell.came_back for cell in found.cells], found.lost_cells, what, share, LEAST_COVERED) + _reach(found.reaches)

    def _medians(self) -> str:
        found, share = self.found, self.found.still
        if share is None:
            return "No mode that replays was timed twice."
        known = [median.host_ratio for median in found.medians]
        what = f"medians of replaying modes moved at most {LARGEST_MOVE:.0%}{_where_equal(known)}"
        return _counted([median.is_still for median in found.medians], found.lost_medians, what, share, LEAST_STILL)

    def _as_measured(self) -> list[str]:
        """Both shares without what the host's speed explains, and what it was."""
        equal = [cell.equal for cell in self.found.cells if cell.equal]
        if not equal:
            return []
        cells = _of([cell.is_covered for cell in self.found.cells], self.found.lost_cells)
        medians = _of([abs(median.move) <= LARGEST_MOVE for median in self.found.medians], self.found.lost_medians)
        changes = [one.loop_ratio - 1 for one in equal]
        return [
            f"As measured, {cells} intervals contain 0 and {medians} medians moved at most {LARGEST_MOVE:.0%}: beside the same cells the"
            f" host's loop of Python took {min(changes):+.1%} to {max(changes):+.1%} in B, and a step follows it by its elasticity (0: not"
            " at all, 1: entirely), which is of both runs together, from inside each.",
        ]

    def _other_clocks(self) -> list[str]:
        """What moves on the host's clock and on no other is the host, not the mode."""
        moves = {clock: [median.others[clock] for median in self.found.medians if clock in median.others] for clock in OTHERS}
        still = {clock: sum(abs(move) <= LARGEST_MOVE for move in found) for clock, found in moves.items()}
        said = [f"{_CLOCKS[clock]} {still[clock]} of {len(found)}" for clock, found in moves.items() if found]
        return [f"The same medians on the other clocks, not judged: {', '.join(said)}."] if said else []

    def tables(self) -> list[Table]:
        """What is outside first in both."""
        cells = sorted(self.found.cells, key=lambda cell: cell.came_back)
        medians = sorted(self.found.medians, key=lambda median: median.is_still)
        shifts = [
            [
                f"{cell.factorial}, {describe(cell.point)}",
                f"{cell.cell}: {cell.mode}",
                f"{cell.ratio:.4f}",
                f"{cell.low:.4f} to {cell.high:.4f}",
                *_equal(cell.equal),
                "yes" if cell.came_back else "no",
            ]
            for cell in cells
        ]
        moves = [
            [
                median.mode,
                describe(median.shape.removeprefix("decode/")),
                *map(words.microseconds, (median.before_us, median.after_us)),
                f"{median.move:+.2%}",
                words.ABSENT if median.equal_move is None else f"{median.equal_move:+.2%}",
                *(f"{median.others[clock]:+.2%}" if clock in median.others else words.ABSENT for clock in OTHERS),
            ]
            for median in medians
        ]
        found = [
            Table("Cells", ["factorial, point", "cell", "B / A", "interval", *_EQUAL, "contains 1"], shifts),
            Table("Medians of replaying modes", ["mode", "step", "A", "B", "move", "at equal host speed", *_CLOCKS.values()], moves),
        ]
        return [table for table in found if table.rows]


def _counted(came_back: Sequence[bool], lost: Sequence[str], what: str, share: float, wanted: float) -> str:
    reached = "" if share >= wanted else ": not reached"
    return f"{_of(came_back, lost)} {what} ({share:.1%}, wanted {wanted:.0%}{reached}).{_lost(lost)}"


def _where_equal(known: Sequence[object]) -> str:
    """Where it is known how the host's speed enters; the others are judged as measured."""
    num = sum(one is not None for one in known)
    if not num:
        return ""
    return " at equal host speed" if num == len(known) else f" ({num} of {len(known)} judged at equal host speed)"


def _of(came_back: Sequence[bool], lost: Sequence[str]) -> str:
    return f"{sum(came_back)} of {len(came_back) + len(lost)}"


def _equal(found: EqualHost | None) -> list[str]:
    """A row's columns of `_EQUAL`."""
    if found is None:
        return [words.ABSENT] * len(_EQUAL)
    elasticity = f"{found.elasticity:.2f} ± {found.standard_error:.2f}"
    return [f"{found.loop_ratio:.4f}", elasticity, f"{found.ratio:.4f}", f"{found.low:.4f} to {found.high:.4f}"]


def _reach(reaches: Sequence[float]) -> str:
    if not reaches:
        return ""
    middle, widest = (
        f"{share:.1%} to either side" if share < 1 else f"a factor of {1 + share:.1f}" for share in (median(reaches), max(reaches))
    )
    return f" In the median cell it reaches {middle}, in the widest {widest}: smaller changes are not seen."


def _lost(names: Sequence[str]) -> str:
    """What only one of the runs has counts as not come back."""
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f" In one run only: {'; '.join(names[:MOST_NAMED])}{more}." if names else ""


def _where(first: Place, second: Place) -> str:
    """Whether both times were on one machine, and when."""
    if unknown := [name for name, place in (("A", first), ("B", second)) if not place.hostname]:
        return f"{' and '.join(unknown)} {'does' if len(unknown) == 1 else 'do'} not say where it was measured, if it was"
    times = f"A from {first.started_at}, B from {second.started_at}"
    if first.is_machine_of(second):
        return f"both times on {_named(first)}, {times}"
    return f"A on {_named(first)}, B on {_named(second)}: not the same machine; {times}"


def _named(place: Place) -> str:
    return f"{place.gpu_uuid} of {place.hostname}" if place.gpu_uuid else place.hostname


def as_markdown(repetition: Repetition) -> str:
    """GitHub-flavoured Markdown."""
    title = f"{words.clean(repetition.before.get('name'))} measured twice"
    lines = [f"# {escaped(title)}", "", *(f"- {escaped(line)}" for line in repetition.sentences()), ""]
    for table in repetition.tables():
        lines += [f"## {table.title}", "", *_rows(table.columns, table.rows), ""]
    return "\n".join(lines)


def _rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    every = [columns, ["---"] * len(columns), *([escaped(cell) for cell in row] for row in rows)]
    return [f"| {' | '.join(row)} |" for row in every]
