"""Write requirements.lock: the installed version of each package that requirements.in needs, directly or below."""

from __future__ import annotations

import importlib.metadata as metadata
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.12", "3.13")
HEADER = """\
# Written by `make lock` from requirements.in; do not edit. For Python 3.11 to 3.13 on Linux.
# torch names its own CUDA libraries exactly, and which build `2.13.0` is depends on the index: those are not pinned here.
"""


def main() -> None:
    """Replace requirements.lock by what the running environment holds. Raises PackageNotFoundError for a missing one."""
    pins = closure([Requirement(line) for line in named(ROOT / "requirements.in")])
    (ROOT / "requirements.lock").write_text(HEADER + "".join(f"{name}=={pins[name]}\n" for name in sorted(pins)), encoding="utf-8")
    sys.stdout.write(f"requirements.lock: {len(pins)} packages\n")


def named(path: Path) -> list[str]:
    """The requirements in a file, without comments and blank lines."""
    lines = (line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def closure(wanted: list[Requirement]) -> dict[str, str]:
    """Name -> public version of all that `wanted` needs on any supported Python."""
    pins: dict[str, str] = {}
    done: set[tuple[str, frozenset[str]]] = set()
    pending = list(wanted)
    while pending:
        requirement = pending.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in done:
            continue
        done.add(key)
        found = metadata.distribution(requirement.name)
        pins[key[0]] = Version(found.version).public
        pending += [below for below in map(Requirement, found.requires or []) if applies(below, requirement.extras)]
    return pins


def applies(requirement: Requirement, extras: set[str]) -> bool:
    """Whether a requirement's marker holds on one of the supported Pythons, with one of the extras or none."""
    marker = requirement.marker
    if marker is None:
        return True
    return any(
        marker.evaluate({"python_version": python, "python_full_version": f"{python}.0", "extra": extra})
        for python in PYTHONS
        for extra in {"", *extras}
    )


if __name__ == "__main__":
    main()
