"""What a C++ compiler needs besides torch, to build a package for CUDA: the toolkit's headers and the driver's library.

AOTInductor links with `-lcuda` and names the toolkit's `lib64` alone, not its stubs (torch 2.11 and 2.13). The driver
puts `libcuda.so.1` where the loader finds it, which is often no folder of the linker's, and without `libcuda.so`.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAPS = Path("/proc/self/maps")
DEFAULT_TOOLKIT = Path("/usr/local/cuda")


def no_toolkit() -> str:
    """Why packages cannot be built for CUDA, or an empty string."""
    return "" if toolkit() else "needs the headers of a CUDA toolkit, which AOTInductor compiles with: install one and name it in CUDA_HOME"


def toolkit() -> Path | None:
    """The CUDA toolkit that torch builds with: `CUDA_HOME`, `CUDA_PATH`, that of `nvcc`, or /usr/local/cuda."""
    named, nvcc = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH"), shutil.which("nvcc")
    if named:
        return Path(named)
    if nvcc:
        return Path(nvcc).parents[1]
    return DEFAULT_TOOLKIT if DEFAULT_TOOLKIT.exists() else None


@contextmanager
def driver_can_be_linked() -> Iterator[None]:
    """Let the linker find, after the user's own `LIBRARY_PATH`, the driver's library that this process has loaded."""
    library, before = loaded_driver(), os.environ.get("LIBRARY_PATH")
    if library is None:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "libcuda.so").symlink_to(library)
        os.environ["LIBRARY_PATH"] = os.pathsep.join(filter(None, (before, folder)))
        try:
            yield
        finally:
            del os.environ["LIBRARY_PATH"]
            os.environ.update({} if before is None else {"LIBRARY_PATH": before})


def loaded_driver() -> Path | None:
    """Where this process has its `libcuda.so.*` from; None before CUDA is used, and without a driver."""
    lines = MAPS.read_text(encoding="utf-8").splitlines() if MAPS.exists() else []
    found = (Path(line.split(maxsplit=5)[-1]) for line in lines)
    return next((file for file in found if file.name.startswith("libcuda.so")), None)
