"""Where things lie. Every path hangs from the project's root, which DVC gives to queued experiments as DVC_ROOT."""

from __future__ import annotations

import os
from pathlib import Path


def root() -> Path:
    """The project's root: OPMODE_ROOT, DVC_ROOT, or the folder that holds this package."""
    for name in ("OPMODE_ROOT", "DVC_ROOT"):
        if os.environ.get(name):
            return Path(os.environ[name]).resolve()
    return Path(__file__).resolve().parents[2]


def latest() -> Path:
    """The study that `dvc repro` keeps up to date; a sweep points each of its jobs elsewhere with OPMODE_STUDY."""
    return Path(os.environ["OPMODE_STUDY"]).resolve() if os.environ.get("OPMODE_STUDY") else root() / "reports" / "latest"


def study(name: str) -> Path:
    """A kept study's folder."""
    return root() / "reports" / "studies" / name


def build() -> Path:
    """Git-ignored working files: compile caches, profiles, partial results, sweeps."""
    return Path(os.environ.get("OPMODE_BUILD") or root() / "build").resolve()
