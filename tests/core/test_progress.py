"""What is being measured, and what the rest will take."""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.core import progress

PLANNED = ["warmup@eager", "warmup@dynamo"]


@pytest.fixture(autouse=True)
def _build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPMODE_BUILD", str(tmp_path))
    monkeypatch.setitem(progress._now, "item", "")


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


def test_first_run_counts_what_is_left_and_guesses_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    progress.announce("warmup", "eager", PLANNED)
    assert said(capsys).rstrip().endswith("warmup@eager: measuring; 2 of 2 left")


def test_second_run_says_how_long_it_will_take(capsys: pytest.CaptureFixture[str]) -> None:
    progress.finished("warmup", "eager", 30, "ok")
    progress.finished("warmup", "dynamo", 120, "failed (it broke)")
    assert "warmup@dynamo: failed (it broke) in 2.0 min" in said(capsys)
    progress.restart()
    progress.announce("warmup", "eager", PLANNED)
    assert "measuring, about 30 s; 2 left, at most 2.5 min" in said(capsys)


def test_broken_journal_starts_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("", "[]", '{"seconds": 1}', '{"seconds": {}, "done": 3}'):
        (tmp_path / "progress.json").write_text(text)
        progress.announce("warmup", "eager", PLANNED)
        assert "2 of 2 left" in said(capsys)


def test_what_is_announced_is_said_again_until_it_is_finished(capsys: pytest.CaptureFixture[str]) -> None:
    progress.still()
    progress.note("nothing was announced")
    assert said(capsys) == ""
    progress.announce("warmup", "eager", PLANNED)
    progress.still(60)  # a line was said just now
    assert len(said(capsys).splitlines()) == 1
    progress.still()
    assert said(capsys).rstrip().endswith("warmup@eager: still measuring, 0 s so far")
    progress.finished("warmup", "eager", 1, "ok")
    progress.still()
    assert len(said(capsys).splitlines()) == 1
