"""The command that walks steps inside NVTX ranges."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from stages.core.errors import UserError
from stages.ranges import main
from tests.workers.small_study import SmallStudy, write_study


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    return write_study(tmp_path_factory.mktemp("study"), "eager", "cuda_graph")


def test_command_prints_paths_by_shape(small: SmallStudy) -> None:
    command = [sys.executable, "-m", "stages.ranges", "--mode", "eager", "--steps", "9"]
    done = subprocess.run(command, env={**os.environ, **small.variables}, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    *lines, note = done.stdout.splitlines()
    assert note == "no NVTX ranges: the study's device is a CPU"
    assert sum(int(line.split()[-2]) for line in lines) == 9
    assert {line.split()[-1] for line in lines} == {"eager"}
    assert lines[-1].startswith("eager prefill padded 32: ")
    assert not (small.folder / "capture").exists()


def test_mode_that_cannot_run_here_is_a_user_error(small: SmallStudy, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, place in small.variables.items():
        monkeypatch.setenv(name, place)
    monkeypatch.setattr(sys, "argv", ["ranges", "--mode", "cuda_graph"])
    with pytest.raises(UserError, match=r"must be one that this device can run; got cuda_graph\. needs CUDA"):
        main()
    monkeypatch.setattr(sys, "argv", ["ranges", "--mode", "eager", "--steps", "0"])
    with pytest.raises(UserError, match="--steps: must be 1 or more"):
        main()


@pytest.mark.gpu
def test_ranges_can_be_pushed_on_a_gpu() -> None:
    from stages.instruments.nvtx import marked

    with marked("a step"):
        torch.ones(1, device="cuda").add_(1)
