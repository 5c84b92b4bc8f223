"""compare: two studies of the same work, A before B, as Markdown on standard output.

    python -m stages.compare torch-2.13 latest
    python -m stages.compare torch-2.13 latest --output build/comparison
    python -m stages.compare h200-steady latest --repeat

A and B are kept studies, `latest`, or paths. New fallbacks since A are the top line; then what the release supports,
paths, answers, start-up by phase, caches, steady state, load. `--output` also writes comparison.md, comparison.html
and junit.xml into a folder. `--repeat`: B is A measured again; whether the numbers came back, with both tables (repeat.md).
Exit status: 0 nothing became worse (the numbers came back), 1 something did (they did not), 2 the studies cannot be compared.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from stages.analysis.comparison import compare
from stages.analysis.repeat import repeat
from stages.core import atomic, kept_studies
from stages.core.closed_output import run_printing_command
from stages.views import document, repeating
from stages.views.comparing import Comparison, as_html, as_junit, as_markdown
from stages.views.repeating import Repetition


def compared(first: str, second: str) -> Comparison:
    """Both studies and what differs. Raises UserError when one is missing or they are of different work."""
    before, after = (document.load(kept_studies.study_file(reference)) for reference in (first, second))
    return Comparison(before, after, compare(before, after))


def told_apart(comparison: Comparison, first: str, second: str) -> Comparison:
    """One params.yaml measured twice gives both studies one name: they are named by where they lie."""
    before, after = comparison.before, comparison.after
    if before.get("name") != after.get("name"):
        return comparison
    names = (f"{study.get('name')} in {reference}" for study, reference in ((before, first), (after, second)))
    return replace(comparison, before={**before, "name": next(names)}, after={**after, "name": next(names)})


def write(comparison: Comparison, folder: Path) -> None:
    """comparison.md, comparison.html and junit.xml."""
    texts = {"comparison.md": as_markdown(comparison), "comparison.html": as_html(comparison), "junit.xml": as_junit(comparison)}
    for name, text in texts.items():
        atomic.write_text(folder / name, text.rstrip("\n") + "\n")


def repeated(comparison: Comparison, folder: Path | None) -> int:
    """Print what became of the numbers of A in B; the exit status."""
    found = Repetition(comparison.before, comparison.after, repeat(comparison.before, comparison.after))
    text = repeating.as_markdown(found)
    if folder:
        atomic.write_text(folder / "repeat.md", text.rstrip("\n") + "\n")
    sys.stdout.write(text + "\n")
    return int(not found.found.holds)


def main() -> int:
    """Parse the command line, compare, print."""
    parser = argparse.ArgumentParser(prog="python -m stages.compare", description="Compare two studies of the same work.")
    parser.add_argument("before", metavar="A", help="a kept study, `latest`, or a path")
    parser.add_argument("after", metavar="B", help="a kept study, `latest`, or a path")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="also write comparison.md, comparison.html and junit.xml here")
    parser.add_argument("--repeat", action="store_true", help="B is A measured again: say whether the numbers came back (repeat.md)")
    given = parser.parse_args()
    comparison = compared(given.before, given.after)
    if given.repeat:
        return repeated(comparison, given.output)
    comparison = told_apart(comparison, given.before, given.after)
    if given.output:
        write(comparison, given.output)
    sys.stdout.write(as_markdown(comparison) + "\n")
    return int(comparison.is_worse)


if __name__ == "__main__":
    run_printing_command(main)
