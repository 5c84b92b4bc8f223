"""How a command ends: its status, and one line where the user can do something."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from stages.core.errors import UserError, run_command


def ended(main: Callable[[], int | None], capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as exit_info:
        run_command(main)
    return int(exit_info.value.code or 0), capsys.readouterr().err


def raising(error: BaseException) -> Callable[[], int | None]:
    def main() -> int | None:
        raise error

    return main


@pytest.mark.parametrize(("returned", "status"), [(None, 0), (0, 0), (1, 1)])
def test_status_of_main_is_the_status_of_the_command(returned: int | None, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(lambda: returned, capsys) == (status, "")


def test_user_error_is_one_line_with_key_rule_value_and_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = ended(raising(UserError("modes", "must be short", "a\nb", "Shorten it.")), capsys)
    assert (status, text) == (2, "error: modes: must be short; got a b. Shorten it.\n")


def test_long_value_is_cut() -> None:
    assert len(str(UserError("key", "rule", "x" * 5000, "Remedy."))) < 400


def test_interruption_says_that_nothing_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    status, text = ended(raising(KeyboardInterrupt()), capsys)
    assert status == 130
    assert "kept" in text
    assert text.count("\n") == 1


def run(code: str) -> tuple[int, str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


INTERRUPT = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"


@pytest.mark.parametrize(
    "body",
    [
        f"exec({INTERRUPT!r})",  # CPython would end by the signal, whatever the status
        "type('Made', (), {'field': type('Field', (), {'__set_name__': interrupt})()})",  # a RuntimeError on Python 3.11
        "try: interrupt()\n    finally: {}['what was not yet there']",
        "try: interrupt()\n    except KeyboardInterrupt: raise UserError('seed', 'must', 'be', 'there') from None",
    ],
)
def test_interruption_is_one_line_and_130_wherever_it_strikes(body: str) -> None:
    code = f"""
import signal
from stages.core.errors import UserError, run_command
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background
def interrupt(*_): {INTERRUPT}
def main():
    {body}
run_command(main)
"""
    status, text = run(code)
    assert (status, text.count("\n")) == (130, 1), text
    assert text.startswith("error: interrupted: ")


def test_interruption_after_the_end_changes_nothing() -> None:
    late = "import atexit, os, signal; atexit.register(os.kill, os.getpid(), signal.SIGINT); signal.signal(signal.SIGINT, signal.SIG_DFL)"
    assert run(f"{late}; from stages.core.errors import run_command; run_command(lambda: 1)") == (1, "")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EDQUOT])
def test_disk_that_cannot_be_written_is_one_line(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = ended(raising(OSError(number, os.strerror(number), "record.json")), capsys)
    assert (status, text.count("\n")) == (2, 1)
    assert text.startswith(f"error: record.json: {os.strerror(number)}")


@pytest.mark.parametrize("number", [errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG])
def test_something_in_the_way_is_one_line(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    status, text = ended(raising(OSError(number, os.strerror(number), "record.json")), capsys)
    assert (status, text) == (2, f"error: record.json: {os.strerror(number)}; move what lies there, then run again\n")


def test_fault_of_the_program_keeps_its_traceback() -> None:
    status, text = run("from stages.core.errors import run_command; run_command(lambda: 1 / 0)")
    assert status == 1
    assert text.startswith("Traceback")
    assert "ZeroDivisionError" in text


def test_fault_of_the_program_is_not_hidden() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        run_command(raising(OSError(errno.EBADF, os.strerror(errno.EBADF))))


def test_a_locale_without_a_sign_ends_no_command() -> None:
    code = r"from stages.core.errors import run_command; run_command(lambda: print('a \u00b7 b'))"
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "a ? b\n", "")
