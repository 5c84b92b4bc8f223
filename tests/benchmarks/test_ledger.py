"""The ledger's benchmark runs, measures each mode at each batch, and says what each instrument adds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.ledger import main, table
from stages.core.errors import UserError

ROOT = Path(__file__).resolve().parents[2]


def test_every_mode_and_batch_has_a_row_and_counters_really_counted(tmp_path: Path) -> None:
    out = tmp_path / "ledger.json"
    arguments = [
        "--device",
        "cpu",
        "--modes",
        "eager",
        "dynamo",
        "--batches",
        "1",
        "2",
        "--rounds",
        "3",
        "--calls",
        "10",
        "--out",
        str(out),
    ]
    done = subprocess.run([sys.executable, "-m", "benchmarks.ledger", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(out.read_text())["rows"]
    assert [(row["mode"], row["batch"]) for row in rows] == [("eager", 1), ("eager", 2), ("dynamo", 1), ("dynamo", 2)]
    assert all(row["plain_us"] > 0 and row["account_us"] > 0 and len(row["ledger_us"]) == 3 for row in rows)
    assert [row["num_compiled_calls"] > 0 for row in rows] == [False, False, True, True]
    assert done.stdout.splitlines()[0].startswith("mode ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--modes", "eager", "fast"], "--mode: must be one of .*eager.*; got fast"),
        (["--rounds", "1"], "--rounds: must be 2 or more; got 1"),
        (["--calls", "0"], "--calls: must be 1 or more; got 0"),
        (["--batches", "4", "0"], "--batches: must be 1 or more; got 0"),
    ],
)
def test_a_wrong_argument_is_a_user_error_before_anything_is_measured(
    arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["ledger", "--device", "cpu", *arguments])
    with pytest.raises(UserError, match=message):
        main()


def test_an_unknown_mode_ends_the_command_in_one_line() -> None:
    command = [sys.executable, "-m", "benchmarks.ledger", "--modes", "fast"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith("error: --mode: must be one of ")


def test_table_shows_a_dash_for_a_mode_without_replays() -> None:
    row = {"mode": "eager", "batch": 1, "plain_us": 100.0, "ledger_us": [1.0, 2.0, 3.0], "account_us": 9.0}
    _, line = table([row])
    assert line.split()[3:] == ["-", "2.0", "(1.0", "to", "3.0)", "9.0"]
