"""report.md: the same answer for a Git host, with the figures as SVG files beside it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from jinja2 import Environment, PackageLoader, StrictUndefined

from stages.views import headline, words
from stages.views.badges import badges
from stages.views.certainty import certainty, switch
from stages.views.document import Study, dig
from stages.views.drawing import Drawn
from stages.views.sections import reproduction, sections

_SPECIAL = re.compile(r"([\\`*\[\]|~#!$])|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"})


def render(study: Study, drawn: Mapping[str, Drawn]) -> str:
    """The report as GitHub-flavoured Markdown; `figures/<name>.svg` must lie beside it."""
    templates = Environment(
        loader=PackageLoader("stages.views"), autoescape=False, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters |= {"md": escaped, "fence": fence}
    return templates.get_template("report.md.j2").render(
        title=str(study.get("name", "study")),
        created_at=str(study.get("created_at", "")),
        sentence=headline.sentence(study),
        context=headline.context(study),
        badges=badges(study),
        why=headline.why(study),
        price=headline.price(study),
        certainty=certainty(study),
        switch=switch(study),
        configuration=words.clean_lines(dig(study, "verdict", "configuration") or ""),
        first=drawn.get("lifetime"),
        sections=sections(study, drawn),
        commands=reproduction(study),
    )


def escaped(text: object) -> str:
    """Text that Markdown and the HTML inside it show as it is; safe in a table cell."""
    cleaned = words.clean(text).translate(_ENTITIES)
    return re.sub(r"(https?|ftp)://", r"\1&#58;//", _SPECIAL.sub(lambda found: "\\" + found.group(0), cleaned))


def fence(text: str) -> str:
    """A fence of back-ticks longer than any run of them in the text."""
    return "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
