"""Errors that are the user's to fix: one message that says key, rule, value and remedy, and no traceback."""

from __future__ import annotations

import atexit
import errno
import io
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NoReturn

EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130
_interrupts: list[int] = []


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
    note_interrupts()
    try:
        status = main() or 0
    except (Exception, KeyboardInterrupt) as error:
        explained = _explained(error)
        if explained is None:
            raise
        status = explained
    end(status)


def _explained(error: BaseException) -> int | None:
    """Say in one line how a command ended; its status. None for what is the program's own fault."""
    if was_interrupted(error):
        print_error("interrupted: what was measured so far is kept; run the same command again to go on")
        return EXIT_INTERRUPTED
    if isinstance(error, UserError):
        print_error(str(error))
    elif isinstance(error, OSError) and error.errno in _USER_ERRNO:
        print_error(f"{error.filename or 'disk'}: {error.strerror}; {_remedy(error)}, then run again")
    else:
        return None
    return EXIT_USER_ERROR


def note_interrupts() -> None:
    """From now on Ctrl-C is remembered as well as raised: a library that it meets halfway makes another error of it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)


def was_interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C is where the error comes from."""
    return isinstance(error, KeyboardInterrupt) or bool(_interrupts)


def _interrupted(number: int, _: object) -> None:
    _interrupts.append(number)
    raise KeyboardInterrupt


@contextmanager
def finishing(say: Callable[[str], None]) -> Iterator[None]:
    """Carry to its end what is better done than half done, although Ctrl-C comes meanwhile; it is then told by `say`, not raised."""
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        say("interrupted when all was measured already: the record is kept; Ctrl-C again ends what comes next")


def end(status: int) -> NoReturn:
    """Exit with this status, also where Ctrl-C came out of an `exec`, or comes now that nothing is left to interrupt."""
    exec("pass")  # CPython kills itself by SIGINT at its end once a KeyboardInterrupt left an `exec` of text, until the next one
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    sys.exit(status)


def print_error(message: str) -> None:
    """One line on stderr, marked as an error."""
    sys.stderr.write(f"error: {message}\n")


def _remedy(error: OSError) -> str:
    return "move what lies there" if error.errno in _IN_THE_WAY else "free some space or fix the permissions"


_IN_THE_WAY = {errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP}
_USER_ERRNO = {errno.EPERM, errno.EACCES, errno.EFBIG, errno.ENOSPC, errno.EROFS, errno.EDQUOT, *_IN_THE_WAY}
