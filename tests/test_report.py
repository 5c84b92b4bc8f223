"""Stage report before anything was measured; on a real study it is tested with the pipeline."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(("arguments", "missing"), [(["--print"], "study.json"), (["--redraw", "nowhere"], "study.json"), ([], ".yaml")])
def test_report_of_nothing_is_one_line(arguments: list[str], missing: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "stages.report", *arguments]
    environment = {**os.environ, "OPMODE_STUDY": str(tmp_path)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"{missing}: must exist" in done.stderr
