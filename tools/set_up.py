"""Check what the machine must have, then make the environment: `python tools/set_up.py .venv`.

A folder that this file made (it holds `.opmode`) is kept at requirements.lock. Any other environment is the user's:
it is only checked against the ranges in pyproject.toml, and nothing is installed into it.

Old interpreters must be able to parse this file, to be told that they are too old: no newer syntax or import than 3.6.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

OLDEST, NEWEST = (3, 11), (3, 13)
ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"


def main(venv: str) -> None:
    """Check, then make or verify the environment `venv` (a folder, or `none` for the running interpreter)."""
    check_python()
    check_compiler()
    folder = ROOT / venv
    if venv == "none" or (folder.exists() and not (folder / ".opmode").exists()):
        check_packages()
    else:
        make(folder)


def stop(message: str) -> None:
    """End with one line for the user, status 2."""
    sys.stderr.write("error: " + message + "\n")
    sys.exit(2)


def check_python() -> None:
    """Stop on a Python that the pinned packages do not support."""
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        stop(
            f"Python: must be 3.11 to 3.13; got {sys.version_info[0]}.{sys.version_info[1]} ({sys.executable}). "
            "Name another: make venv PYTHON=/path/to/python3.12"
        )


def check_compiler() -> None:
    """Stop when torch.compile could not build its kernels: no C++ compiler, or no Python.h."""
    compiler = os.environ.get("CXX") or ("clang++" if sys.platform == "darwin" else "g++")
    if not shutil.which(compiler.split()[0]):
        stop(
            "C++ compiler: torch.compile needs one; found no " + compiler + ". Install it (Debian: apt-get install g++), or name one in CXX"
        )
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if not header.exists():
        stop(f"Python.h: torch.compile needs it; found none at {header}. Install it (Debian: apt-get install python3-dev)")


def make(folder: Path) -> None:
    """Make the environment where it is missing, and install the lock where it changed since the last install."""
    stamp = folder / ".opmode"
    wanted = LOCK.read_text(encoding="utf-8")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
        return
    folder.mkdir(parents=True, exist_ok=True)
    stamp.write_text("", encoding="utf-8")
    sys.stdout.write(f"installing requirements.lock into {folder} (a few minutes)\n")
    sys.stdout.flush()
    if not (folder / "bin" / "python").exists() or not (folder / "bin" / "pip").exists():
        run([sys.executable, "-m", "venv", str(folder)], "Debian: apt-get install python3-venv")
    python = str(folder / "bin" / "python")
    run([python, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "-r", str(LOCK)], "Is the package index reached?")
    stamp.write_text(wanted, encoding="utf-8")


def run(command: "list[str]", remedy: str) -> None:
    """Run a command that must succeed."""
    status = subprocess.run(command, check=False).returncode
    if status:
        stop("{}: exit status {}; what it printed is above. {}".format(" ".join(command), status, remedy))


def check_packages() -> None:
    """Stop, with the list, when the running interpreter misses a package or has one outside of its range."""
    wrong = faults()
    if wrong:
        stop(
            "{}: this environment is used as it is, and must hold what pyproject.toml asks for; got {}. "
            "Install them (python -m pip install -r requirements.lock), or let make use .venv".format(sys.prefix, "; ".join(wrong))
        )


def faults() -> "list[str]":
    """Each requirement of pyproject.toml (the checks' included) that the running interpreter does not meet."""
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return ["no packaging"]
    import tomllib
    from importlib import metadata

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = []
    for text in project["dependencies"] + project["optional-dependencies"]["dev"]:
        wanted = Requirement(text)
        try:
            version = metadata.version(wanted.name)
        except metadata.PackageNotFoundError:
            found.append("no " + wanted.name)
            continue
        if not wanted.specifier.contains(version, prereleases=True):
            found.append(f"{wanted.name} {version} (wants {wanted.specifier})")
    return found


if __name__ == "__main__":
    main(sys.argv[1])
