"""report.html: one file that asks for nothing else, from study.json alone."""

from __future__ import annotations

import re
from collections.abc import Mapping

from markupsafe import Markup, escape

from stages.views import palette, words
from stages.views.contents import contents
from stages.views.document import Study
from stages.views.drawing import Drawn
from stages.views.templating import templates


def render(study: Study, drawn: Mapping[str, Drawn]) -> str:
    """The page. Everything that a configuration, a trace or an error wrote is escaped; figures are inline SVG."""
    environment = templates(autoescape=True)
    environment.filters |= {"clean": words.clean, "lines": stacked_lines}
    return environment.get_template("report.html.j2").render(
        title=words.clean(study.get("name", "study")),
        created_at=words.clean(study.get("created_at", "")),
        **contents(study, drawn),
        light=Markup(palette.declarations(dark=False)),
        dark=Markup(palette.declarations(dark=True)),
        svg=_trusted,
    )


def stacked_lines(text: str) -> Markup:
    """`3.94× [1.93, 8.06] faster` on three lines, so that tables stay narrow; escaped."""
    value, bracket, rest = words.clean(text).partition(" [")
    inside, closing, after = rest.partition("]")
    if not closing or not re.match(r"[−-]?\d", value) or not re.match(r"[−-]?\d", inside):
        return escape(value + bracket + rest)
    verdict = Markup(' <span class="range">{}</span>').format(after.strip()) if after.strip() else ""
    return Markup('{} <span class="range">[{}]</span>{}').format(value, inside, verdict)


def _trusted(figure: Drawn) -> Markup:
    """Our own drawing, whose texts are escaped already."""
    return Markup(figure.svg)
