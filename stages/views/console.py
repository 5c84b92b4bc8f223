"""The verdict as the terminal shows it at the end of `make repro`."""

from __future__ import annotations

import io

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from stages.views import headline, words
from stages.views.badges import badges
from stages.views.document import Study
from stages.views.tables import modes
from stages.views.tables.table import Table, dropped_empty

_SHORT = {"ready cold": "cold", "ready warm": "warm", "goodput, 1/s": "goodput"}
_TONES = {"good": "green", "warn": "yellow", "bad": "red", "none": "dim"}


def render(study: Study, width: int = 120, colour: bool = False) -> str:
    """Sentence, badges, the table of modes, then those not ranked with the reason. `width` in characters."""
    console = Console(
        file=io.StringIO(), width=width, force_terminal=colour, color_system="standard" if colour else None, legacy_windows=False
    )
    console.print(Text(headline.sentence(study), style="bold"))
    console.print(Text(" · ".join(f"{fact.name} {fact.value}" for fact in headline.context(study)), style="dim"))
    for badge in badges(study):
        console.print(Text(f"{badge.mark} {badge.text}", style=_TONES[badge.tone]))
    for line in (headline.why(study), headline.price(study)):
        if line:
            console.print(Text(line))
    for table in (_slim(modes.summary(study, intervals=False)), modes.not_ranked(study)):
        if table.rows:
            console.print(_grid(table))
    text = console.file
    assert isinstance(text, io.StringIO), "the console writes to memory"
    return text.getvalue()


def _slim(table: Table) -> Table:
    """The smallest and the largest batch only, and no reasons, so that the table fits a terminal."""
    decode = [index for index, column in enumerate(table.columns) if column.startswith("decode ")]
    reasons = [index for index, column in enumerate(table.columns) if column in ("factorial", "not ranked because")]
    slim = table.only([index for index in range(len(table.columns)) if index not in {*decode[1:-1], *reasons}])
    names = [_SHORT.get(column, column) for column in slim.columns]
    return dropped_empty(Table("", names, slim.rows, f"{table.note} Goodput in requests/s.", table.texts))


def _grid(table: Table) -> Grid:
    grid = Grid(
        title=Text(table.title) if table.title else None,
        title_justify="left",
        caption=Text(table.note) if table.note else None,
        caption_justify="left",
        box=None,
        pad_edge=False,
    )
    for column, number in zip(table.columns, table.numeric(), strict=True):
        grid.add_column(
            Text(words.clean(column)),
            justify="right" if number else "left",
            overflow="fold",
            no_wrap=column != "why",
        )
    for row in table.rows:
        grid.add_row(*(Text(words.clean(cell)) for cell in row))
    return grid
