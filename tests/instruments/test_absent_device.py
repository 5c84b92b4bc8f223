"""A thread that compiled and ended leaves nothing behind that the next compilation would crash on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from stages.instruments.absent_device import own_stand_in

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import threading
import torch
from stages.instruments.absent_device import own_stand_in

def compiled(change):
    return torch.compile(lambda x: x + change, backend="eager", fullgraph=True)(torch.zeros(4, 4)[:2])

own_stand_in()
thread = threading.Thread(target=compiled, args=(1,))
thread.start()
thread.join()
assert compiled(2)[0, 0] == 2
"""


def test_main_thread_compiles_after_one_that_ended() -> None:
    """Without the call a build of torch 2.11 for CUDA ends here by SIGSEGV where there is no GPU."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr)


def test_device_that_is_there_gets_no_stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    monkeypatch.setattr(torch._C, "_ensureCUDADeviceGuardSet", lambda: called.append("made"), raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    own_stand_in()
    assert called == []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    own_stand_in()
    assert called == ["made"]
    monkeypatch.delattr(torch._C, "_ensureCUDADeviceGuardSet")
    own_stand_in()
