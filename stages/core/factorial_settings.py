"""A composed factorial, typed and checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stages.core.errors import UserError
from stages.core.settings import BASELINE
from stages.core.typed_yaml import typed


@dataclass(kw_only=True)
class FactorialSettings:
    """A file of conf/factorial: cell keys (E, C, R, CR, extras) to modes, and the cells that get an A/A twin.

    `finalists`: after one heat of all cells only this many, the fastest, go on into the sets; 0: all cells are in every set.
    """

    name: str
    cells: dict[str, str]
    twins: list[str]
    finalists: int = 0


def checked_factorial(document: Any, name: str, modes: list[str]) -> FactorialSettings:
    """A composed factorial, held to its file's name and to the modes of conf/mode. Raises UserError."""
    where = f"factorial.{name}"
    factorial = typed(FactorialSettings, document, where)
    if factorial.name != name:
        raise UserError(f"{where}.name", f"must be {name}, as its file", factorial.name, "Change one of the two.")
    if factorial.cells.get("E") != BASELINE:
        raise UserError(f"{where}.cells", f"must have E: {BASELINE}, the baseline", factorial.cells, "Add the cell.")
    if factorial.finalists and not 2 <= factorial.finalists < len(factorial.cells):
        rule = "must be 0 (all cells in every set), or at least 2 and fewer than there are cells"
        raise UserError(f"{where}.finalists", rule, factorial.finalists, "2 for a direct comparison of the two fastest.")
    for cell, mode in factorial.cells.items():
        if mode not in modes:
            raise UserError(f"{where}.cells.{cell}", "must name a file in conf/mode/", mode, f"Available: {', '.join(modes)}.")
    for cell in factorial.twins:
        if cell not in factorial.cells:
            raise UserError(f"{where}.twins", "must name cells of the factorial", cell, f"Cells: {', '.join(factorial.cells)}.")
    return factorial
