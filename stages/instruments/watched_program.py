"""The watched process: run one Python program with the counters installed, then write what they counted.

python -m stages.instruments.watched_program SUMMARY_FILE (SCRIPT | -m MODULE) [ARGUMENT ...]
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from stages.core.atomic import write_json
from stages.instruments.ledger import watch


def main() -> None:
    """Run the program as `python` would; its exceptions and exit status are this process's."""
    summary_file, program = Path(sys.argv[1]), sys.argv[2:]
    with watch() as ledger:
        try:
            _run(program)
        finally:
            write_json(summary_file, ledger.summary())


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
