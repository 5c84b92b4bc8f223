"""PYTHONPATH of a child that must import from a folder first, and from wherever the machine keeps its packages after that."""

from __future__ import annotations

import os
from pathlib import Path


def python_path(first: Path) -> dict[str, str]:
    """The variable, with what it holds here kept behind the folder."""
    return {"PYTHONPATH": os.pathsep.join([str(first), *filter(None, [os.environ.get("PYTHONPATH")])])}
