"""Errors that are the user's to fix: one message that says key, rule, value and remedy, and no traceback."""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import Callable

EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130


class UserError(Exception):
    """Something the user can fix. The message is printed as it is; the exit status is 2."""

    def __init__(self, key: str, rule: str, value: object, remedy: str) -> None:
        """Join the four parts into one line: `key: rule; got value. remedy`."""
        self.key, self.rule, self.value, self.remedy = key, rule, value, remedy
        super().__init__(" ".join(f"{key}: {rule}; got {_shown(value)}. {remedy}".split()))


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= 300 else text[:297] + "..."


def run_command(main: Callable[[], int | None]) -> None:
    """Run a command's `main` and exit: 0 or its own status, 2 for a user error, 130 for Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a locale without the sign prints `?`
    try:
        status = main() or 0
    except UserError as error:
        print_error(str(error))
        status = EXIT_USER_ERROR
    except KeyboardInterrupt:
        print_error("interrupted: what was measured so far is kept; run the same command again to go on")
        status = EXIT_INTERRUPTED
    except OSError as error:
        if error.errno not in _USER_ERRNO:
            raise
        print_error(f"{error.filename or 'disk'}: {error.strerror}; {_remedy(error)}, then run again")
        status = EXIT_USER_ERROR
    sys.exit(status)


def print_error(message: str) -> None:
    """One line on stderr, marked as an error."""
    sys.stderr.write(f"error: {message}\n")


def _remedy(error: OSError) -> str:
    return "move what lies there" if error.errno in _IN_THE_WAY else "free some space or fix the permissions"


_IN_THE_WAY = {errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP}
_USER_ERRNO = {errno.EPERM, errno.EACCES, errno.EFBIG, errno.ENOSPC, errno.EROFS, errno.EDQUOT, *_IN_THE_WAY}
