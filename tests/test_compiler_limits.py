"""What one test sets of the compiler's limits does not reach the next, and what was set before it stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import torch.compiler.config as limits

from tests.compiler_limits import OF_TORCH, kept


def found() -> dict[str, object]:
    return {name: getattr(limits, name) for name in OF_TORCH}


def test_limits_are_put_back_as_they_were_before_and_not_as_torch_has_them() -> None:
    limits.recompile_limit, limits.fail_on_recompile_limit_hit = 5, True
    with kept():
        limits.recompile_limit, limits.fail_on_recompile_limit_hit = 3, False
    assert found() == {"recompile_limit": 5, "fail_on_recompile_limit_hit": True}


def test_what_the_test_above_left_is_gone() -> None:
    assert found() == OF_TORCH


def test_torch_that_a_test_imports_itself_is_left_with_its_own_limits() -> None:
    code = """
import sys
from tests.compiler_limits import OF_TORCH, kept
with kept():
    assert 'torch' not in sys.modules
    import torch.compiler.config as limits
    assert {name: getattr(limits, name) for name in OF_TORCH} == OF_TORCH
    limits.recompile_limit = 3
assert limits.recompile_limit == OF_TORCH['recompile_limit']
"""
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).resolve().parents[1], check=True)
