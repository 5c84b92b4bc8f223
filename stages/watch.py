"""watch: what torch's compiler and CUDA graphs did while a program of yours ran.

    python -m stages.watch -- serve.py --port 8000
    python -m stages.watch -- -m my_package.serve
    python -m stages.watch --trace-out data/served.csv -- serve.py

Runs the program in a child process with class-level counters installed, and prints at its end: compilations, recompiles
and graph breaks with torch's reasons, compiled calls, captures, recordings, replays, skipped CUDA graphs. The exit
status is the program's (128 + the signal's number where one ended it). `--trace-out` also writes the requests that its steps
show as a canonical trace (conf/trace/canonical.yaml), ready for a study of your own traffic. In a program or a test of your own:

    from stages.watch import watch

    with watch() as ledger:
        warm_up()
        ledger.restart()
        serve()
        ledger.expect(num_recompiles=0, min_replayed=0.99)
        ledger.write_trace("data/served.csv")
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from stages.core.atomic import check_writable
from stages.core.closed_output import run_printing_command
from stages.core.errors import UserError, print_error
from stages.core.records.base import read_json
from stages.instruments.ledger import COUNT_NAMES, ExpectationFailed, Ledger, watch

__all__ = ["ExpectationFailed", "Ledger", "watch"]

_PACKAGE_PARENT = Path(__file__).resolve().parents[1]


def run(program: list[str], trace_out: Path | None = None) -> tuple[int, dict[str, Any] | None]:
    """Run a script or `-m module` under watch; its exit status, and the ledger's summary.

    With `trace_out` the summary has `num_requests`, and why the trace was not written, in `trace_refused`.
    The summary is None when the program ended without unwinding (a signal, `os._exit`). Raises UserError for what is no
    Python program, and OSError, before it runs, for a trace that could not be written.
    """
    interpreter, program = _program(program)
    if trace_out:
        check_writable(trace_out.resolve())
    path = os.pathsep.join([str(_PACKAGE_PARENT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with tempfile.TemporaryDirectory(prefix="opmode-watch-") as folder:
        file = Path(folder) / "summary.json"
        trace = str(trace_out.resolve()) if trace_out else ""
        command = [interpreter, "-m", "stages.instruments.watched_program", str(file), trace, *program]
        status = subprocess.run(command, env=os.environ | {"PYTHONPATH": path}, check=False).returncode
        return (128 - status if status < 0 else status), read_json(file) if file.is_file() else None


def _program(command: list[str]) -> tuple[str, list[str]]:
    """The interpreter and the rest; a leading `python` may be given, and is then the one that runs."""
    has_interpreter = bool(command) and Path(command[0]).name.startswith("python") and Path(command[0]).suffix != ".py"
    interpreter, rest = (command[0], command[1:]) if has_interpreter else (sys.executable, command)
    if shutil.which(interpreter) is None:
        raise UserError("command", "must start with a Python that is installed, or with the script", interpreter, "Leave it out or fix it.")
    if rest[:1] == ["-m"] and len(rest) > 1:
        return interpreter, rest
    if not rest or not Path(rest[0]).is_file():
        raise UserError("command", "must be a Python script or -m and a module", " ".join(command) or "nothing", "See --help.")
    return interpreter, rest


def lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """The summary as text: a line a count, with the reasons (cut to 240 characters) below it."""
    share = summary["replayed_share"]
    for name in COUNT_NAMES:
        subject = name.removeprefix("num_")
        yield f"watch: {summary[name]:6,} {subject.replace('_', ' ')}"
        yield from (f"{'':14}{' '.join(reason.split())[:240]}" for reason in summary["reasons"].get(subject, []))
    yield f"watch: replayed share {'unknown: nothing compiled or replayed ran' if share is None else f'{share:.1%}'}"
    yield from (f"watch: this torch has no {name}: its calls are not counted" for name in summary["missing"])


def main() -> int:
    """Run the program, print what was counted, return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m stages.watch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trace-out", type=Path, help="write the requests that the program's steps show as a canonical trace (CSV)")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="after --: a script or -m module, with its arguments")
    options = parser.parse_args()
    command = options.command
    status, summary = run(command[1:] if command[:1] == ["--"] else command, options.trace_out)
    if summary is None:
        print_error(f"the program ended with status {status} before its counts could be read")
    else:
        sys.stderr.write("".join(f"{line}\n" for line in [*lines(summary), *_trace_line(summary, options.trace_out)]))
    return status


def _trace_line(summary: Mapping[str, Any], file: Path | None) -> list[str]:
    if not file:
        return []
    refused = summary["trace_refused"]
    return [f"watch: no trace: {refused}" if refused else f"watch: {summary['num_requests']:6,} requests in {file}"]


if __name__ == "__main__":
    run_printing_command(main)
