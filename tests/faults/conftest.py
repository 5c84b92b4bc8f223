"""On which device the planted faults run, and what each found, so that the outcomes can be written down as a table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from stages.core.records.correctness import Check
from tests.planted.conftest import pytest_collection_modifyitems

__all__ = ["pytest_collection_modifyitems"]  # the marks `fault` and `twin` go into the reports here as well

Tell = Callable[..., None]


@pytest.fixture(scope="session")
def device() -> str:
    """The CPU, or what PLANTED_DEVICE says."""
    return os.environ.get("PLANTED_DEVICE", "cpu")


@pytest.fixture
def tell(record_property: Callable[[str, Any], None]) -> Tell:
    """Keeps the failed checks of a test, those of the named probe first: `tell(checks, probe)`."""

    def keep(checks: Iterable[Check], probe: str = "") -> None:
        failed = sorted((check for check in checks if check.verdict == "fail"), key=lambda check: check.probe != probe)
        record_property("verdict", "wrong" if failed else "correct")
        record_property("reason", "; ".join(dict.fromkeys(_described(check) for check in failed)))

    return keep


def _described(check: Check) -> str:
    value, limit = ("not a number" if number is None else f"{number:.3g}" for number in (check.value, check.limit))
    return f"{check.probe}: {check.name} {value} ({limit}) on {check.subject}"
