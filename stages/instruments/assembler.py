"""One ptxas for all kernels: the assembler that turns what Triton makes into machine code, named to every worker.

torch's CUDA builds carry a ptxas of their own beside Triton's. torch's compile pool names it to Triton (`TRITON_PTXAS_PATH`), the
process itself only once it compiles without the pool, after Triton may have read the version of its own for good. Triton's
cache key holds that version, so which kernels a warm start finds depends on whether the pool was ready in time: on torch
2.11.0+cu130 (ptxas 13.0 beside 12.8) warm starts compiled 3 to 134 kernels again
(`torch/_inductor/runtime/compile_tasks.py`, `_set_triton_ptxas_path`; `triton/backends/nvidia/compiler.py`, `get_ptxas_version`).
It also decides which machine code the same kernel has in two modes.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from functools import cache
from pathlib import Path

VARIABLE = "TRITON_PTXAS_PATH"


def variables() -> dict[str, str]:
    """What a worker's environment needs to have one assembler; nothing where the user names one, or torch carries none."""
    found = None if os.environ.get(VARIABLE) else torchs_ptxas()
    return {VARIABLE: str(found)} if found else {}


def workers_version() -> str | None:
    """Version of the ptxas that workers use, as in `13.0.88`; None without one."""
    named = os.environ.get(VARIABLE)
    return version(Path(named) if named else torchs_ptxas() or tritons_ptxas())


def torchs_ptxas() -> Path | None:
    """The one that torch carries; torch is not imported."""
    return _executable("torch", "bin/ptxas")


def tritons_ptxas() -> Path | None:
    """The one that Triton carries, its own default."""
    return _executable("triton", "backends/nvidia/bin/ptxas")


@cache
def version(ptxas: Path | None) -> str | None:
    """What it says of itself; None where it does not run."""
    if ptxas is None:
        return None
    try:
        said = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True, timeout=20).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"\bV(\d[\d.]*)", said)
    return match.group(1) if match else None


def _executable(package: str, place: str) -> Path | None:
    found = importlib.util.find_spec(package)
    file = Path(found.origin).parent / place if found and found.origin else None
    return file if file and file.is_file() and os.access(file, os.X_OK) else None
