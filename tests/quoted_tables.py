"""Tables in documents that say, in a comment above them, from which kept file their numbers are."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def quoted_rows(document: str, source: str) -> list[list[str]]:
    """Cells of the rows, without the head, of the table below `<!-- from reports/studies/{source} -->`."""
    text = (ROOT / document).read_text(encoding="utf-8")
    lines = text.split(f"<!-- from reports/studies/{source} -->")[1].strip().split("\n\n")[0].splitlines()
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines[2:]]
