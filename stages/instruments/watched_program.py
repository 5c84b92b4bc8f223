"""The watched process: run one Python program with the counters installed, then write what they counted.

python -m stages.instruments.watched_program SUMMARY_FILE TRACE_FILE (SCRIPT | -m MODULE) [ARGUMENT ...]

An empty TRACE_FILE: no trace is written.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

from stages.core.atomic import write_json
from stages.core.errors import UserError
from stages.instruments.ledger import Ledger, watch


def main() -> None:
    """Run the program as `python` would; its exceptions and exit status are this process's."""
    summary_file, trace_file, program = Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    with watch() as ledger:
        try:
            _run(program)
        finally:
            write_json(summary_file, ledger.summary() | (_trace(ledger, trace_file) if trace_file else {}))


def _trace(ledger: Ledger, file: str) -> dict[str, Any]:
    try:
        return {"num_requests": ledger.write_trace(file), "trace_refused": ""}
    except UserError as error:
        return {"num_requests": 0, "trace_refused": str(error)}


def _run(program: list[str]) -> None:
    if program[0] == "-m":
        sys.argv = program[1:]
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = program
        sys.path[0] = str(Path(program[0]).resolve().parent)
        runpy.run_path(program[0], run_name="__main__")


if __name__ == "__main__":
    main()
