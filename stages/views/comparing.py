"""A comparison of two studies as Markdown, as one HTML file, and as JUnit XML for a CI server.

Texts of the two studies are escaped in each; what became worse stands first in each section.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup

from stages.analysis.comparison import SECTIONS, Difference, environment_changes, new_fallbacks
from stages.views import palette, words
from stages.views.markdown import escaped
from stages.views.tables.table import Table
from stages.views.templating import templates

TITLES = {
    "fallbacks": "Fallbacks",
    "support": "What the release supports",
    "paths": "Paths and coverage",
    "correctness": "Answers",
    "startup": "Start-up",
    "caches": "Compile caches",
    "steady_state": "Steady state",
    "load": "Load",
    "memory": "Memory",
}
ORDER = ("worse", "better", "undecided", "same")
_TEXTS = frozenset({"what", "note", "A", "B"})


@dataclass(frozen=True)
class Comparison:
    """Two studies and what differs. `before` is A."""

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    differences: Sequence[Difference]

    @property
    def title(self) -> str:
        """Both names, A first."""
        return f"{words.clean(self.before.get('name'))} (A) against {words.clean(self.after.get('name'))} (B)"

    @property
    def fallbacks(self) -> list[str]:
        """What fell back in B and did not in A."""
        return new_fallbacks(self.differences)

    @property
    def headline(self) -> str:
        """The top line: new fallbacks since A, whatever the averages say."""
        found = self.fallbacks
        return f"New fallbacks since A: {len(found)}" if found else "New fallbacks since A: none"

    @property
    def counts(self) -> str:
        """How many quantities are worse, better, undecided, same."""
        return ", ".join(f"{sum(row.judgement == word for row in self.differences)} {word}" for word in ORDER)

    @property
    def is_worse(self) -> bool:
        """Whether anything became worse."""
        return any(row.judgement == "worse" for row in self.differences)

    def tables(self) -> list[Table]:
        """What differs around the measurement, then one table a section; sections without rows are left out."""
        changes = environment_changes(self.before, self.after)
        around = Table(
            "Environment", ["environment", "A", "B"], [[name, *map(_text, pair)] for name, pair in changes.items()], texts=_TEXTS
        )
        found = [_section(key, [row for row in self.differences if row.section == key]) for key in SECTIONS]
        return [table for table in (around, *found) if table.rows]


def _section(key: str, rows: Sequence[Difference]) -> Table:
    ordered = sorted(rows, key=lambda row: ORDER.index(row.judgement))
    cells = [[row.judgement, row.mode or words.ABSENT, row.subject, row.before, row.after, row.why] for row in ordered]
    columns = ["B is", "mode", "what", "A", "B", "note"]
    if not any(row.why for row in rows):
        columns, cells = columns[:-1], [line[:-1] for line in cells]
    return Table(TITLES[key], columns, cells, texts=_TEXTS | {"mode"})


def _text(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def as_markdown(comparison: Comparison) -> str:
    """GitHub-flavoured Markdown."""
    lines = [f"# {escaped(comparison.title)}", "", f"**{comparison.headline}**", ""]
    lines += [f"- {escaped(line)}" for line in comparison.fallbacks] + ([""] if comparison.fallbacks else [])
    lines += [comparison.counts, ""]
    for table in comparison.tables():
        rows = [table.columns, ["---"] * len(table.columns), *([escaped(cell) for cell in row] for row in table.rows)]
        lines += [f"## {table.title}", "", *(f"| {' | '.join(row)} |" for row in rows), ""]
    return "\n".join(lines)


def as_html(comparison: Comparison) -> str:
    """One page that asks for nothing else."""
    environment = templates(autoescape=True)
    environment.filters["clean"] = words.clean
    tone = {"worse": "bad", "better": "good", "undecided": "warn", "same": "none"}
    return environment.get_template("comparison.html.j2").render(
        comparison=comparison, tone=tone, light=Markup(palette.declarations(dark=False)), dark=Markup(palette.declarations(dark=True))
    )


def as_junit(comparison: Comparison) -> str:
    """JUnit XML: a suite a section, a case a quantity; worse is a failure, undecided is skipped, the rest passes."""
    root = ElementTree.Element("testsuites", _totals(comparison.differences, comparison.title))
    for section in SECTIONS:
        rows = [row for row in comparison.differences if row.section == section]
        if rows:
            suite = ElementTree.SubElement(root, "testsuite", _totals(rows, TITLES[section]))
            for row in rows:
                _case(suite, row)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _totals(rows: Sequence[Difference], name: str) -> dict[str, str]:
    counts = {word: sum(row.judgement == word for row in rows) for word in ORDER}
    numbers = {"tests": len(rows), "failures": counts["worse"], "errors": 0, "skipped": counts["undecided"]}
    return {"name": words.clean(name)} | {key: str(value) for key, value in numbers.items()}


def _case(suite: ElementTree.Element, row: Difference) -> None:
    case = ElementTree.SubElement(suite, "testcase", {"classname": words.clean(row.mode or "release"), "name": words.clean(row.subject)})
    message = words.clean(f"{row.judgement}: {row.before} -> {row.after}{f' ({row.why})' if row.why else ''}")
    if row.judgement == "worse":
        ElementTree.SubElement(case, "failure", {"message": message, "type": "worse"}).text = message
    elif row.judgement == "undecided":
        ElementTree.SubElement(case, "skipped", {"message": message})
    else:
        ElementTree.SubElement(case, "system-out").text = message
