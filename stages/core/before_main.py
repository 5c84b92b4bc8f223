"""What ends a command while its own file still imports: a package that this Python lacks, or Ctrl-C. One line, no traceback.

`main` could catch neither. So the package asks for this when it is imported, for `python -m stages.<command>` alone: in a
program that imports it the interpreter stays as it is.
"""

from __future__ import annotations

import sys
from types import TracebackType

from stages.core.errors import EXIT_INTERRUPTED, EXIT_USER_ERROR, UserError, end, note_interrupts, print_error, was_interrupted


def explain() -> None:
    """While a command is being started, a missing module that is none of this package's ends it with status 2, Ctrl-C with 130."""
    command, default = _command(), sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if was_interrupted(error):
            print_error("interrupted before anything was done; run the same command again")
            end(EXIT_INTERRUPTED)
        if not isinstance(error, ModuleNotFoundError) or not error.name or error.name.split(".")[0] == "stages":
            default(kind, error, traceback)
            return
        remedy = f"Run `.venv/bin/python -m {command}` (`make venv` makes it), or install requirements.lock into this one."
        rule = f"must be installed in the Python that runs {command}"
        print_error(str(UserError(error.name, rule, f"{sys.executable} without it", remedy)))
        end(EXIT_USER_ERROR)

    if command:
        note_interrupts()
        sys.excepthook = hook


def _command() -> str:
    """The command that is being started, `stages.compare`; empty for a program, a test, or a worker (`stages.workers.child`)."""
    if sys.argv[:1] != ["-m"]:  # so it is while Python looks for the module to run
        return ""
    given = getattr(sys, "orig_argv", [])  # not yet in Python 3.9
    module = given[given.index("-m") + 1] if "-m" in given[:-1] else ""
    return module if module.startswith("stages.") and module.count(".") == 1 else ""
