"""What the count of a step's bytes refuses, and how it reads a profiler's counters. Profiling needs a GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks.step_bytes import main
from stages.core.errors import UserError


@pytest.mark.parametrize("command", ["run", "read"])
def test_an_unknown_model_is_a_user_error(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counters = tmp_path / "counters.csv"
    counters.write_text("")
    monkeypatch.setattr(sys, "argv", ["step_bytes", command, str(counters), "--model", "gpt"])
    with pytest.raises(UserError, match=r"--model: must be one of .*llama_1b.*; got gpt\. See conf/model/"):
        main()


def test_counters_of_all_kernels_add_up_in_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counters = tmp_path / "counters.csv"
    rows = ['"Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum"', '"","Mbyte","Kbyte"', '"a","1.5","500"', '"b","0.5","500"']
    counters.write_text("==PROF== connected\n" + "\n".join(rows))
    monkeypatch.setattr(sys, "argv", ["step_bytes", "read", str(counters), "--model", "tiny", "--context", "64", "--precision", "fp32"])
    assert main() == 0
    assert "read 2.0 MB" in (printed := capsys.readouterr().out)
    assert "written 1.0 MB" in printed
