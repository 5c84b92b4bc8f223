"""The jinja2 environment of every page: the templates beside the views, and an error for a name that nobody gave."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined


def templates(autoescape: bool) -> Environment:
    """Templates of stages/views/templates; `autoescape` for HTML, off for Markdown, which escapes by its own filter."""
    return Environment(
        loader=PackageLoader("stages.views"), autoescape=autoescape, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
