"""What report.html and report.md both show, in the words of one study: the pages differ in how, not in what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stages.views import headline
from stages.views.badges import badges
from stages.views.certainty import certainty
from stages.views.configurations import configurations
from stages.views.document import Study
from stages.views.drawing import Drawn
from stages.views.sections import reproduction, sections
from stages.views.switching import switch
from stages.views.tables.glance import glance


def contents(study: Study, drawn: Mapping[str, Drawn]) -> dict[str, Any]:
    """The variables that both report templates use, besides `title` and `created_at`, which each page escapes its own way."""
    return {
        "sentence": headline.sentence(study),
        "context": headline.context(study),
        "badges": badges(study),
        "why": headline.why(study),
        "certainty": certainty(study),
        "switch": switch(study),
        "glance": glance(study),
        "configurations": configurations(study),
        "first": drawn.get("lifetime"),
        "sections": sections(study, drawn),
        "commands": reproduction(study),
    }
