"""The ledger's benchmark runs, measures each mode at each batch, and says what each instrument adds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.ledger import table

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


def test_table_shows_a_dash_for_a_mode_without_replays() -> None:
    row = {"mode": "eager", "batch": 1, "plain_us": 100.0, "ledger_us": [1.0, 2.0, 3.0], "account_us": 9.0}
    _, line = table([row])
    assert line.split()[3:] == ["-", "2.0", "(1.0", "to", "3.0)", "9.0"]
