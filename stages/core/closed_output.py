"""A command whose result is text, when nobody reads on: `python -m stages.compare A B | head -1`."""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Callable
from typing import Any, TextIO

from stages.core.errors import run_command

EXIT_CLOSED = 141
"""128 + SIGPIPE: what a shell reports of a program that a closed pipe ended."""


def run_printing_command(main: Callable[[], int | None]) -> None:
    """`run_command`, but a closed stdout or stderr ends the command without a word, status 141."""
    if sys.stdout is None:  # started with `>&-`
        sys.stdout = io.StringIO()
    try:
        try:
            run_command(main)
        finally:
            sys.stdout.flush()  # at the interpreter's end nobody could catch it
    except BrokenPipeError:
        closed = [stream for stream in (sys.stdout, sys.stderr) if _is_closed(stream)]
        if not closed:
            raise  # another pipe than the reader's
        for stream in closed:
            _discard(stream)
        sys.exit(EXIT_CLOSED)


def print_rich(renderable: Any) -> None:
    """Print a table of rich's; of a closed pipe rich itself says nothing and ends with 1, the status of a failure."""
    from rich.console import Console

    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(renderable)
    sys.stdout.write(captured.get())
    sys.stdout.flush()


def _is_closed(stream: TextIO) -> bool:
    """Whether the other end of a pipe or socket is gone. Writing again would not tell: what failed is no longer in the buffer."""
    poll = select.poll()
    poll.register(stream.fileno(), select.POLLOUT)
    return any(events & (select.POLLERR | select.POLLHUP) for _, events in poll.poll(0))


def _discard(stream: TextIO) -> None:
    """What the interpreter still flushes at its end goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
