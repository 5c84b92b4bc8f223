"""Kept studies by name, and what a command line may call a study."""

from __future__ import annotations

import re
from pathlib import Path

from stages.core import paths
from stages.core.errors import UserError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")


def names() -> list[str]:
    """Names of the kept studies, sorted."""
    return sorted(file.parent.name for file in paths.study("any").parent.glob("*/study.json") if not file.parent.name.startswith("."))


def checked_name(name: str) -> str:
    """A name that may be a folder's. Raises UserError for any other, and for `latest`."""
    if not _NAME.fullmatch(name) or name == "latest":
        raise UserError("name", "must be letters, digits, `_`, `-`, `.`, and not `latest`", name, "Choose another.")
    return name


def folder(name: str) -> Path:
    """A kept study's folder. Raises UserError when there is none of that name."""
    if name not in names():
        raise UserError("study", f"must be a kept study ({', '.join(names()) or 'there are none'})", name, "See reports/studies/.")
    return paths.study(name)


def study_file(reference: str) -> Path:
    """study.json of `latest`, of a kept study's name, or at a path (a study folder or the file). Raises UserError."""
    if reference == "latest":
        return paths.latest() / "study.json"
    if reference in names():
        return paths.study(reference) / "study.json"
    path = Path(reference)
    file = path / "study.json" if path.is_dir() else path
    if not file.is_file():
        kept = ", ".join(["latest", *names()])
        raise UserError("study", f"must be one of {kept}, or a path", reference, "Keep one with python -m stages.keep NAME.")
    return file
