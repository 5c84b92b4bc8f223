"""A command whose reader has gone ends without a word, and only then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stages.core.closed_output import run_printing_command

ROOT = Path(__file__).resolve().parents[2]
IMPORT = "from stages.core.closed_output import run_printing_command"
PRINTING = {
    "much": "for _ in range(100000): print('a line of a table')",
    "little, left in the buffer": "print('a line')",
    "a user's error": "from stages.core.errors import UserError; print('a line'); raise UserError('key', 'rule', 'value', 'remedy')",
}


def unread(*arguments: str, folder: Path = ROOT, with_stderr: bool = False) -> tuple[int, str]:
    """Run a command whose output nobody reads; its status, and what it says on stderr where that is still read."""
    reading, writing = os.pipe()
    os.close(reading)
    errors = writing if with_stderr else subprocess.PIPE
    done = subprocess.run([sys.executable, *arguments], cwd=folder, stdout=writing, stderr=errors, text=True, check=False)
    os.close(writing)
    return done.returncode, done.stderr or ""


@pytest.mark.parametrize("body", PRINTING.values(), ids=PRINTING)
@pytest.mark.parametrize("with_stderr", [False, True])
def test_closed_output_ends_quietly_as_a_closed_pipe_does(body: str, with_stderr: bool) -> None:
    code = f"{IMPORT}\ndef main():\n    {body}\nrun_printing_command(main)"
    status, said = unread("-c", code, with_stderr=with_stderr)
    assert status == 141
    assert said in ("", "error: key: rule; got value. remedy\n")


@pytest.mark.parametrize("arguments", [["compare", "latest", "latest"], ["report", "--print"], ["gate"], ["inspect_trace"]], ids=" ".join)
def test_commands_that_print_end_quietly(arguments: list[str]) -> None:
    assert unread("-m", f"stages.{arguments[0]}", *arguments[1:]) == (141, "")


def test_the_summary_of_watch_ends_quietly(tmp_path: Path) -> None:
    (tmp_path / "serve.py").write_text("")
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import runpy; sys.argv = ['watch', 'serve.py']; "
    code += "runpy.run_module('stages.watch', run_name='__main__', alter_sys=True)"
    assert unread("-c", code, folder=tmp_path, with_stderr=True) == (141, "")


def test_no_output_at_all_is_no_fault() -> None:
    code = f"{IMPORT}; import sys; run_printing_command(lambda: sys.stdout.write('a') and 3)"
    done = subprocess.run(["bash", "-c", '"$0" -c "$1" >&-', sys.executable, code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (3, "")


@pytest.mark.parametrize(("returned", "status"), [(None, 0), (1, 1)])
def test_status_of_main_is_the_status_of_the_command(returned: int | None, status: int) -> None:
    with pytest.raises(SystemExit) as exit_info:
        run_printing_command(lambda: returned)
    assert exit_info.value.code == status


def test_another_closed_pipe_is_a_fault_that_shows() -> None:
    code = f"{IMPORT}\ndef main():\n    raise BrokenPipeError('a pipe')\nrun_printing_command(main)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "BrokenPipeError: a pipe")
