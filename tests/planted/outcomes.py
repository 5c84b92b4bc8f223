"""What became of every planted fault and of its healthy twin, as a table: run the tests, write faults.json and faults.md.

    python -m tests.planted.outcomes --out reports/studies/h200-proof          every fault that can run here
    python -m tests.planted.outcomes --out reports/studies/h200-proof --gpu    those that need CUDA only
    python -m tests.planted.outcomes --out reports/studies/h200-proof --gpu --processes 4    the same, four at once
    PLANTED_DEVICE=cuda python -m tests.planted.outcomes --out ... --no-gpu    the others, on the GPU as well

A later run replaces the rows of the tests that it ran and keeps the rest.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from stages.core import atomic
from stages.core.errors import UserError
from stages.core.records.base import read_json
from stages.environment import describe

HERE = Path(__file__).resolve().parent
FAULTS = (
    "KV cache as a plain mutated input under Trees",
    "graph whose only GPU op cannot be captured",
    ".item() in the middle",
    "nine shapes with dynamic=False",
    "weights swapped by pointer 200 times",
    "batch past the largest captured size",
    "per-layer integer that specialises",
    "input made outside inference_mode",
    "backend=eager with mode=",
    "KV cache that grows by one each step",
    "compile inside the timed window",
    "Trees asked for on a CPU",
    "graph break by a data-dependent if",
    "second thread on torch 2.11",
    "attribute changed after capture",
    "SDPA choosing another backend in one mode",
    "adapters switched by pointer",
)
ASSERTED = ("assert ", "AssertionError", "Failed: DID NOT RAISE")  # how pytest words what a test found untrue
TEMPORARY = re.compile(r"/[^\s\"]*pytest-of-[^\s\"]*/")  # the folder of this run says nothing to a reader
DEVICES = ("cpu", "cuda")
WORDS = {
    "fault": {"passed": "detected", "failed": "MISSED", "skipped": "not run"},
    "twin": {"passed": "raises nothing", "failed": "RAISES", "skipped": "not run"},
}


class Outcomes:
    """A pytest plugin that keeps one row a planted test."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        on_cpu, on_gpu = describe("cpu"), describe("auto")
        self.machines, self.torch = {"cpu": on_cpu["cpu"], "cuda": on_gpu["gpu"] or "no GPU"}, on_cpu["torch"]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        said = dict(report.user_properties)
        if "faults" not in said or not (report.when == "call" or report.outcome != "passed"):
            return
        test, why_not = report.nodeid.rpartition("::")[2], _why_not(report)
        self.rows = [row for row in self.rows if row["test"] != test]  # its teardown broke
        self.rows.append(
            {
                "faults": said["faults"],
                "kind": said["kind"],
                "test": test,
                "outcome": outcome_of(str(said["kind"]), report.outcome, why_not, str(report.when)),
                "verdict": said.get("verdict", ""),
                "reason": TEMPORARY.sub(".../", str(said.get("reason") or why_not)),
                "seconds": round(report.duration, 1),
                "on": self.machines[str(said["device"])],
                "torch": self.torch,
            }
        )


def outcome_of(kind: str, outcome: str, message: str, when: str = "call") -> str:
    """In words; a test that ended in anything but an assertion of its own says nothing of the fault: it `broke`."""
    broke = outcome == "failed" and (when != "call" or not message.startswith(ASSERTED))
    return "broke" if broke else WORDS[kind][outcome]


def _why_not(report: pytest.TestReport) -> str:
    """Why a test was skipped, or the message of what ended it; empty for one that passed."""
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message) if crash else ""


def main() -> int:
    """Run, merge, write; the exit status is pytest's."""
    parser = parser_of(__doc__)
    parser.add_argument("--gpu", action=argparse.BooleanOptionalAction, help="only those that need CUDA, or only the others")
    options = parser.parse_args()
    chosen = "(fault or twin)" + {True: " and gpu", False: " and not gpu", None: ""}[options.gpu]
    return run(parser, options, table, [str(HERE), "-m", chosen])


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """A command line with what every such table needs."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=0, help="run that many at once (needs pytest-xdist)")
    return parser


def run(
    parser: argparse.ArgumentParser, options: argparse.Namespace, table_of: Callable[[list[dict[str, Any]]], str], tests: list[str]
) -> int:
    """Run these tests, write faults.json and faults.md with the rows of earlier runs; the exit status is pytest's."""
    try:
        parallel = prepared(options.out, options.processes)
    except (UserError, OSError) as error:
        parser.error(str(error))
    outcomes = Outcomes()
    status = pytest.main([*tests, "-q", *parallel], plugins=[outcomes])
    if not outcomes.rows:
        return int(status) or pytest.ExitCode.NO_TESTS_COLLECTED
    with (Path(tempfile.gettempdir()) / "opmode-faults.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another GPU's half may end at the same time
        document = merged(options.out / "faults.json", outcomes.rows) | {"ended_at": datetime.now(UTC).isoformat(timespec="seconds")}
        atomic.write_json(options.out / "faults.json", document)
        atomic.write_text(options.out / "faults.md", table_of(document["rows"]))
    return int(status)


def prepared(out: Path, processes: int) -> list[str]:
    """pytest's options for so many processes at once. Raises UserError for what would lose the rows at the end, or make them untrue."""
    device = os.environ.get("PLANTED_DEVICE", "cpu")
    if device not in DEVICES or (device == "cuda" and not describe("auto")["gpu"]):
        raise UserError("PLANTED_DEVICE", "must be cpu, or cuda where there is a GPU", device, "Unset it, or go to a GPU.")
    if processes and not find_spec("xdist"):
        raise UserError("--processes", "needs pytest-xdist", processes, "Install that, or leave this out.")
    atomic.check_writable(out / "faults.md")
    earlier = read_json(out / "faults.json") if (out / "faults.json").exists() else {"rows": []}
    rows = earlier.get("rows") if isinstance(earlier, dict) else None
    if not isinstance(rows, list) or not all(isinstance(row, dict) and row.keys() >= {"faults", "kind", "test", "outcome"} for row in rows):
        raise UserError(str(out / "faults.json"), "must be the table of an earlier run", earlier, "Move it away.")
    return ["-n", str(processes), "-p", "no:benchmark"] if processes else []  # which warns beside xdist


def merged(file: Path, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What ran now, and the rows of an earlier run whose tests did not run now."""
    before = json.loads(file.read_text(encoding="utf-8"))["rows"] if file.is_file() else []
    ran = {row["test"] for row in rows if row["outcome"] != "not run"}
    known = {row["test"] for row in before}
    kept = [row for row in before if row["test"] not in ran]
    return {"rows": kept + [row for row in rows if row["test"] in ran or row["test"] not in known]}


def table(rows: list[dict[str, Any]]) -> str:
    """A row a planted test, in the order of FAULTS: faults first, then their twins."""
    lines = ["# Planted faults", "", "| fault | planted or twin | verdict | reason | outcome | on |", "|---|---|---|---|---|---|"]
    for fault in FAULTS:
        for row in sorted((row for row in rows if fault in row["faults"]), key=lambda row: row["kind"]):
            lines.append(row_of(fault, row, 300))
    return "\n".join(lines) + "\n"


def row_of(fault: str, row: dict[str, Any], most_characters: int) -> str:
    """One planted test as a row, its reason cut to so many characters."""
    whole = " ".join(row["reason"].split())
    reason = (whole if len(whole) <= most_characters else f"{whole[:most_characters].rpartition(' ')[0]} ...").replace("|", "\\|")
    what = row["test"].removeprefix("test_").replace("_", " ")
    return f"| {fault} | {row['kind']}: {what} | {row['verdict']} | {reason} | {row['outcome']} | {row['on']} |"


if __name__ == "__main__":
    sys.exit(main())
