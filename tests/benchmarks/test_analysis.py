"""The analysis' benchmark measures as many steps as it says, within the time and memory that the analysis may take."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.analysis import study, write

ROOT = Path(__file__).resolve().parents[2]
MOST_US = 60.0  # a step: 10^6 of them in a minute
MOST_MB = 2000


@pytest.mark.parametrize("num_steps", [10**4, 10**5])
def test_record_has_the_steps_asked_for(num_steps: int, tmp_path: Path) -> None:
    assert write(study(num_steps), tmp_path / "record.json") == pytest.approx(num_steps, rel=0.1)


def test_time_a_step_and_memory_stay_within_what_a_million_steps_may_take() -> None:
    command = [sys.executable, "benchmarks/analysis.py", "--steps", "10000", "100000"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == 2
    for line in lines:
        _, _, _, _, us_a_step, _, _, _, peak_mb, _ = line.split()
        assert float(us_a_step) <= MOST_US
        assert float(peak_mb) <= MOST_MB
