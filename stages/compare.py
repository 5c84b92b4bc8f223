"""compare: two studies of the same work, A before B, as Markdown on standard output.

    python -m stages.compare h200_torch_2_12 latest

A and B are kept studies, `latest`, or paths. New fallbacks come first, then start-up, steady state and answers.
Exit status: 0 nothing became worse, 1 something did, 2 the studies cannot be compared.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from stages.analysis.comparison import Difference, compare, environment_changes
from stages.core import kept_studies
from stages.core.errors import run_command
from stages.views import document

_TITLES = {
    "evidence": "Paths: new fallbacks since A",
    "startup": "Start-up",
    "steady_state": "Steady state",
    "correctness": "Answers",
}
_ORDER = ("worse", "better", "undecided", "same")


def compared(first: str, second: str) -> tuple[document.Study, document.Study, list[Difference]]:
    """Both studies and what differs. Raises UserError when one is missing or they are of different work."""
    before, after = (document.load(kept_studies.study_file(reference)) for reference in (first, second))
    return before, after, compare(before, after)


def markdown(before: document.Study, after: document.Study, differences: Sequence[Difference]) -> str:
    """The comparison as Markdown: what became worse stands first in each section."""
    counts = ", ".join(f"{sum(row.judgement == word for row in differences)} {word}" for word in _ORDER)
    lines = [f"# {_cell(before.get('name'))} (A) against {_cell(after.get('name'))} (B)", "", counts, ""]
    changes = environment_changes(before, after)
    if changes:
        lines += _table(("environment", "A", "B"), [(name, *pair) for name, pair in changes.items()])
    for section, title in _TITLES.items():
        lines += [f"## {title}", "", *_rows([row for row in differences if row.section == section])]
    return "\n".join(lines)


def _rows(differences: Sequence[Difference]) -> Iterator[str]:
    ordered = sorted(differences, key=lambda row: _ORDER.index(row.judgement))
    cells = [(row.judgement, row.mode, row.subject, row.before, row.after) for row in ordered]
    yield from _table(("B is", "mode", "what", "A", "B"), cells) if cells else ["nothing to compare", ""]


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    made = [header, ["---"] * len(header), *rows]
    return [*(f"| {' | '.join(_cell(value) for value in row)} |" for row in made), ""]


def _cell(value: object) -> str:
    return " ".join(str(value).split()).replace("|", r"\|").replace("<", "&lt;")


def main() -> int:
    """Parse the command line, compare, print."""
    parser = argparse.ArgumentParser(prog="python -m stages.compare", description="Compare two studies of the same work.")
    parser.add_argument("before", metavar="A", help="a kept study, `latest`, or a path")
    parser.add_argument("after", metavar="B", help="a kept study, `latest`, or a path")
    given = parser.parse_args()
    before, after, differences = compared(given.before, given.after)
    sys.stdout.write(markdown(before, after, differences) + "\n")
    return int(any(row.judgement == "worse" for row in differences))


if __name__ == "__main__":
    run_command(main)
