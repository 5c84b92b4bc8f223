"""The README's numbers are those of the kept study that it names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def rows() -> list[list[str]]:
    table = README.split("<!-- from reports/studies/")[1].split("![")[0]
    lines = [line for line in table.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def study() -> dict[str, Any]:
    match = re.search(r"<!-- from (reports/studies/\S+) -->", README)
    assert match, "the README names the study that its table comes from"
    document: dict[str, Any] = json.loads((ROOT / match.group(1)).read_text(encoding="utf-8"))
    return document


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_row_of_the_result_table_is_in_the_kept_study(row: list[str]) -> None:
    mode, path, answers, cold, warm, decode, sequence, goodput = row
    found = study()["modes"][mode]
    assert path == found["evidence"]["verdict"]
    assert answers == found["correctness"]["verdict"]
    assert cold == f"{found['startup']['cold']['ready_s']:.1f}"
    assert warm == f"{found['startup']['warm']['ready_s']:.1f}" + ("" if found["startup"]["warm"]["proved"] else ", refuted")
    assert decode == f"{found['steady_state']['decode']['1']['wall_us']['median'] / 1000:.2f}"
    compared = found["steady_state"]["sequence"].get("vs_baseline")
    expected = "baseline" if mode == "eager" else "undecided" if compared["verdict"] == "undecided" else f"{compared['speedup']:.2f}x"
    assert sequence == expected
    assert goodput == " / ".join(f"{found['load'][rate]['request_goodput']:.1f}" for rate in ("12", "40"))


def test_every_local_link_leads_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", README):
        assert (ROOT / target).exists(), f"README links to {target}"
