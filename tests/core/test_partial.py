"""Parts of an unfinished record are measured once."""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.core.errors import UserError
from stages.core.partial import Partial
from stages.core.records.base import Document


class Part(Document):
    value: int


@pytest.fixture
def partial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Partial:
    monkeypatch.setenv("OPMODE_BUILD", str(tmp_path))
    return Partial("key")


def test_part_is_measured_once_until_it_is_forgotten(partial: Partial) -> None:
    assert partial.part("a", Part, lambda: Part(value=1)).value == 1
    assert Partial("key").part("a", Part, lambda: Part(value=2)).value == 1
    partial.clear()
    assert Partial("key").part("a", Part, lambda: Part(value=3)).value == 3


def test_other_key_and_other_name_are_other_parts(partial: Partial) -> None:
    partial.part("a", Part, lambda: Part(value=1))
    assert partial.part("b", Part, lambda: Part(value=2)).value == 2
    assert Partial("other").part("a", Part, lambda: Part(value=3)).value == 3


def test_measurement_that_breaks_leaves_no_part(partial: Partial) -> None:
    def broken() -> Part:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        partial.part("a", Part, broken)
    assert partial.part("a", Part, lambda: Part(value=1)).value == 1


def test_broken_part_is_a_user_error(partial: Partial) -> None:
    partial.folder.mkdir(parents=True)
    (partial.folder / "a.json").write_text("{")
    with pytest.raises(UserError, match=r"must be JSON"):
        partial.part("a", Part, lambda: Part(value=1))


def test_forgetting_nothing_is_no_error(partial: Partial) -> None:
    partial.clear()
    assert not partial.folder.exists()
