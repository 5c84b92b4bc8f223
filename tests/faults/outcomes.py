"""What became of every planted fault of the answers and of its healthy twin, as a table: run the tests, write faults.json and faults.md.

    python -m tests.faults.outcomes --out FOLDER                                 on the CPU, and with a GPU those that need CUDA
    PLANTED_DEVICE=cuda python -m tests.faults.outcomes --out FOLDER             all of them on the GPU
    PLANTED_DEVICE=cuda python -m tests.faults.outcomes --out FOLDER --processes 4      the same, four at once
    ... --only through_the_command        half of them, `--only "not through_the_command"` the others: two GPUs may share the folder

A later run replaces the rows of the tests that it ran and keeps the rest.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.faults.listed import FAULTS
from tests.planted.outcomes import parser_of, row_of, run

HERE = Path(__file__).resolve().parent
HEAD = "| fault | planted or twin | verdict | failed checks: value (limit) | outcome | on | torch |"
MOST_CHARACTERS = 400
MOST_FAULTS_OF_A_TWIN = 3
"""A twin of more stands once, at the end."""


def main(arguments: list[str] | None = None) -> int:
    """Run, merge, write; the exit status is pytest's."""
    parser = parser_of(__doc__)
    parser.add_argument("--only", default="", help="pytest's -k: tests whose names match")
    options = parser.parse_args(arguments)
    chosen = ["-k", options.only] if options.only else []
    return run(parser, options, table, [str(HERE), "-m", "fault or twin", *chosen])


def table(rows: list[dict[str, Any]]) -> str:
    """How many there are, then a row a planted test in the order of `FAULTS`: faults first, then their twins; twins of many last."""
    kinds = {kind: [row for row in rows if row["kind"] == kind and row["outcome"] != "not run"] for kind in ("fault", "twin")}
    detected = sum(row["outcome"] == "detected" for row in kinds["fault"])
    quiet = sum(row["outcome"] == "raises nothing" for row in kinds["twin"])
    counts = (
        f"{detected} of {len(kinds['fault'])} tests that plant a fault detected it ({len(FAULTS)} faults);"
        f" {quiet} of {len(kinds['twin'])} healthy twins raise nothing."
    )
    lines = ["# Planted faults of the answers", "", counts, "", HEAD, "|---|---|---|---|---|---|---|"]
    own = [row for row in rows if len(row["faults"]) <= MOST_FAULTS_OF_A_TWIN]
    for fault in FAULTS:
        planted = sorted((row for row in own if fault in row["faults"]), key=lambda row: (row["kind"], row["test"]))
        lines += [_row(fault, row) for row in planted]
    lines += [_row(f"{len(row['faults'])} of these", row) for row in rows if row not in own]
    return "\n".join(lines) + "\n"


def _row(fault: str, row: dict[str, Any]) -> str:
    return f"{row_of(fault, row, MOST_CHARACTERS)} {row['torch']} |"


if __name__ == "__main__":
    sys.exit(main())
