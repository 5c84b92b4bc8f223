"""report.md: the same answer for a Git host, with the figures as SVG files beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from stages.views import words
from stages.views.contents import contents
from stages.views.document import Study
from stages.views.drawing import Drawn
from stages.views.templating import templates

_SPECIAL = re.compile(r"([\\`*\[\]|~#!$])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"})


def render(study: Study, drawn: Mapping[str, Drawn]) -> str:
    """The report as GitHub-flavoured Markdown; `figures/<name>.svg` must lie beside it."""
    environment = templates(autoescape=False)
    environment.filters |= {"md": escaped, "fence": fence}
    return environment.get_template("report.md.j2").render(
        title=str(study.get("name", "study")),
        created_at=str(study.get("created_at", "")),
        **contents(study, drawn),
    )


def escaped(text: object) -> str:
    """Text that Markdown and the HTML inside it show as it is; safe in a table cell."""
    cleaned = _SPECIAL.sub(lambda found: "\\" + found.group(0), words.clean(text)).translate(_ENTITIES)  # entities hold a #
    return re.sub(r"(https?|ftp)://", r"\1&#58;//", cleaned)


def fence(text: str) -> str:
    """A fence of back-ticks longer than any run of them in the text."""
    return "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
