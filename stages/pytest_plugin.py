"""The gate as a pytest plugin: a service's own CI fails when its new study is worse than the one it keeps.

    pytest -p stages.pytest_plugin --opmode-study build/study --opmode-baseline studies/release

One test a mode (it ran, its path is proved, its answers are right), and, with a baseline, one test for new fallbacks
and one for each section and mode. Studies are `latest`, kept names or paths. Where opmode is installed
(`pip install -e`), `-p` is not needed. Without `--opmode-study` the plugin does nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stages.core import kept_studies
from stages.core.errors import UserError


class GateItem(pytest.Item):
    """One test of the gate: it passes when `problems` are none."""

    def __init__(self, *, problems: list[str], wins: list[str], **keywords: Any) -> None:
        """`problems`: one sentence each; `wins`: what became better, shown and never a failure."""
        super().__init__(**keywords)
        self.problems, self.wins = problems, wins

    def runtest(self) -> None:
        """Fail with every problem."""
        if self.wins:
            self.add_report_section("call", "better", "\n".join(self.wins))
        if self.problems:
            pytest.fail("\n".join(self.problems), pytrace=False)

    def reportinfo(self) -> tuple[str, None, str]:
        """Where a failure is shown."""
        return "opmode", None, self.name


def pytest_addoption(parser: pytest.Parser) -> None:
    """The two studies."""
    group = parser.getgroup("opmode", "gate on a study of operating modes")
    group.addoption("--opmode-study", metavar="B", default=None, help="the study to gate: latest, a kept name, or a path")
    group.addoption("--opmode-baseline", metavar="A", default=None, help="the study it must not be worse than")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the gate's tests. Raises pytest.UsageError where a study is missing or the two cannot be compared."""
    reference, baseline = config.getoption("--opmode-study"), config.getoption("--opmode-baseline")
    if baseline and not reference:
        raise pytest.UsageError("--opmode-baseline: needs --opmode-study, the study to gate")
    if not reference:
        return

    def make(name: str, problems: list[str], wins: list[str]) -> GateItem:
        item: GateItem = GateItem.from_parent(session, name=name, problems=problems, wins=wins)
        return item

    try:
        items.extend(_tests(reference, baseline, make))
    except UserError as error:
        raise pytest.UsageError(str(error)) from error


def _tests(reference: str, baseline: str | None, make: Callable[[str, list[str], list[str]], GateItem]) -> Iterator[GateItem]:
    from stages import gate
    from stages.analysis.comparison import new_fallbacks, wins
    from stages.views import document

    study = document.load(kept_studies.study_file(reference))
    for mode in study["modes"]:
        yield make(f"opmode[{mode}]", list(gate.broken_modes(study, [mode])), [])
    differences = gate.since(baseline, study)
    if baseline:
        yield make("opmode[new fallbacks]", new_fallbacks(differences), [])
    for section, mode in dict.fromkeys((row.section, row.mode) for row in differences if row.section != "fallbacks"):
        rows = [row for row in differences if (row.section, row.mode) == (section, mode)]
        yield make(f"opmode[{section}, {mode or 'release'}]", list(gate.regressions(baseline, rows)), wins(rows))
