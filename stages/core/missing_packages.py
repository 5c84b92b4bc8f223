"""A command started with a Python that lacks a package of the project: one line instead of an import's traceback.

The command's own file imports what is missing, before its `main` could catch anything. So the package asks for this when
it is imported, for `python -m stages.<command>` alone: in a program that imports it the interpreter stays as it is.
"""

from __future__ import annotations

import sys
from types import TracebackType

EXIT_USER_ERROR = 2


def explain() -> None:
    """While a command is being started: a missing module that is none of this package's ends it with one line, status 2."""
    command, default = _command(), sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if not isinstance(error, ModuleNotFoundError) or not error.name or error.name.split(".")[0] == "stages":
            default(kind, error, traceback)
            return
        sys.stderr.write(
            f"error: {error.name}: must be installed in the Python that runs {command}; got {sys.executable} without it. "
            f"Run `.venv/bin/python -m {command}` (`make venv` makes it), or install requirements.lock into this one.\n"
        )
        sys.exit(EXIT_USER_ERROR)

    if command:
        sys.excepthook = hook


def _command() -> str:
    """The command that is being started, `stages.compare`; empty for a program, a test, or a worker (`stages.workers.child`)."""
    if sys.argv[:1] != ["-m"]:  # so it is while Python looks for the module to run
        return ""
    given = getattr(sys, "orig_argv", [])  # not yet in Python 3.9
    module = given[given.index("-m") + 1] if "-m" in given[:-1] else ""
    return module if module.startswith("stages.") and module.count(".") == 1 else ""
