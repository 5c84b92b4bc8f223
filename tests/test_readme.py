"""The README's numbers are those of the kept study that it names."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.quoted_tables import quoted_rows

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


(SOURCE,) = re.findall(r"<!-- from reports/studies/(\S+) -->", README)
"""The study that its table comes from."""


def study() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / "reports" / "studies" / SOURCE).read_text(encoding="utf-8"))
    return document


@pytest.mark.parametrize("row", quoted_rows("README.md", SOURCE), ids=lambda row: row[0])
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
