"""Numbers that documents quote from a kept study are those of the study."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
STUDIES = ROOT / "reports" / "studies"
STUDY = json.loads((STUDIES / "h200-llama-1b" / "study.json").read_text(encoding="utf-8"))
BATCHES = ("1", "8", "64")


def rows() -> list[list[str]]:
    text = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    table = text.split("<!-- from reports/studies/h200-llama-1b/study.json -->")[1].split("\n\n")[0]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("| ")][2:]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_step_times_of_the_decoder_are_those_of_the_study(row: list[str]) -> None:
    name, *times = row
    if name == "floor":
        found = [STUDY["modes"]["eager"]["floor"][batch]["floor_us"] for batch in BATCHES]
    else:
        found = [STUDY["modes"][name]["steady_state"]["decode"][batch]["pipelined_us"]["median"] for batch in BATCHES]
    assert times[: len(BATCHES)] == [f"{value:,.0f}" for value in found]


def test_every_mode_is_in_the_decoders_table() -> None:
    assert {row[0] for row in rows()} == {"floor", *STUDY["modes"]}


def test_coverage_and_churn_of_the_proof_are_those_of_the_studys_report() -> None:
    report, proof = (
        (STUDIES / file).read_text(encoding="utf-8").splitlines() for file in ("h200-llama-1b/report.md", "h200-proof/coverage.md")
    )
    tables = [line for line in proof if line.startswith("| ")]
    assert len(tables) == 2 * (2 + len(STUDY["modes"]))
    assert set(tables) <= set(report)


def test_replaying_modes_replayed_every_one_of_twenty_thousand_steps() -> None:
    for name, mode in STUDY["modes"].items():
        path, steps = ("replayed", 20_000) if mode["claim"]["replay"] != "none" else ("eager" if name == "eager" else "compiled", 2_000)
        assert mode["coverage"]["steps_walked"] == steps
        assert mode["coverage"]["shares"]["num_steps"] == {path: 1.0}


def test_what_the_ledger_costs_is_what_was_measured() -> None:
    text = (ROOT / "docs" / "methodology.md").read_text(encoding="utf-8")
    for row in json.loads((STUDIES / "h200-proof" / "ledger.json").read_text(encoding="utf-8"))["rows"]:
        counter, ledger = (_median_and_quartiles(row.get(key)) for key in ("counter_us", "ledger_us"))
        cells = [row["mode"], str(row["batch"]), f"{row['plain_us']:.0f}", counter, ledger, f"{row['account_us']:.0f}"]
        assert f"| {' | '.join(cells)} |" in text


def _median_and_quartiles(values: list[float] | None) -> str:
    return "–" if values is None else f"{values[1]:.1f} ({values[0]:.1f} to {values[2]:.1f})"
