"""The files that a study document is drawn into; drawn twice, they are equal byte for byte."""

from __future__ import annotations

from pathlib import Path

from stages.core import atomic
from stages.views import markdown, page
from stages.views.document import Study
from stages.views.figures.all import draw_all
from stages.views.metrics import metrics
from stages.views.series import all_series


def write_views(study: Study, folder: Path) -> list[Path]:
    """Write report.md, report.html, metrics.json, figures/ and series/ into `folder`; gives the paths written.

    A figure that this study has nothing for is removed, so that no older one stays beside the report.
    """
    drawn = draw_all(study)
    texts = {folder / "figures" / f"{name}.svg": figure.standalone() for name, figure in drawn.items()}
    texts |= {folder / "report.md": markdown.render(study, drawn), folder / "report.html": page.render(study, drawn)}
    documents = {folder / "series" / f"{name}.json": rows for name, rows in all_series(study).items()}
    for path, text in texts.items():
        atomic.write_text(path, text)
    for path, document in {**documents, folder / "metrics.json": metrics(study)}.items():
        atomic.write_json(path, document)
    for old in (folder / "figures").glob("*.svg"):
        if old not in texts:
            old.unlink()
    return [*texts, *documents, folder / "metrics.json"]
