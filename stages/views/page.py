"""report.html: one file that asks for nothing else, from study.json alone."""

from __future__ import annotations

from collections.abc import Mapping

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from stages.views import headline, palette, words
from stages.views.badges import badges
from stages.views.document import Study, dig
from stages.views.drawing import Drawn
from stages.views.sections import reproduction, sections


def render(study: Study, drawn: Mapping[str, Drawn]) -> str:
    """The page. Everything that a configuration, a trace or an error wrote is escaped; figures are inline SVG."""
    templates = Environment(
        loader=PackageLoader("stages.views"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters["clean"] = words.clean
    return templates.get_template("report.html.j2").render(
        title=words.clean(study.get("name", "study")),
        created_at=words.clean(study.get("created_at", "")),
        sentence=headline.sentence(study),
        context=headline.context(study),
        badges=badges(study),
        why=headline.why(study),
        price=headline.price(study),
        configuration=words.clean_lines(dig(study, "verdict", "configuration") or ""),
        first=drawn.get("lifetime"),
        sections=sections(study, drawn),
        commands=reproduction(study),
        light=Markup(palette.declarations(dark=False)),
        dark=Markup(palette.declarations(dark=True)),
        svg=_trusted,
    )


def _trusted(figure: Drawn) -> Markup:
    """Our own drawing, whose texts are escaped already."""
    return Markup(figure.svg)
