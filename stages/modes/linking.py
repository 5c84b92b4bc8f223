"""What a C++ compiler needs besides torch to build a package: the shared C++ library, a CUDA toolkit's headers, the driver's library.

AOTInductor links with `-lcuda` and names the toolkit's `lib64` alone, not its stubs (torch 2.11 and 2.13). The driver
puts `libcuda.so.1` where the loader finds it, which is often no folder of the linker's, and without `libcuda.so`.
A compiler that links the C++ library as an archive (`-static-libstdc++`, or where it has no shared one) puts a second one
beside torch's. Loading such a package ended with a segmentation fault, a hang or `API call failed` (torch 2.11 and 2.13, GCC 12 and 13).
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

MAPS = Path("/proc/self/maps")
DEFAULT_TOOLKIT = Path("/usr/local/cuda")
SHARED_CXX = (b"libstdc++.", b"libc++.")
PROGRAM = "#include <string>\nstd::string twice(const std::string& text) { return text + text; }\n"
ANSWER_S = 20


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


def no_shared_cxx() -> str:
    """Why packages of this compiler would not load, or an empty string."""
    compiler = os.environ.get("CXX") or "g++"  # as torch chooses
    if not links_archive(compiler):
        return ""
    needed = "needs a C++ compiler that links the shared C++ library"
    return f"{needed}, and {compiler} links the archive: name another one in CXX, such as CXX=/usr/bin/g++"


@cache
def links_archive(compiler: str) -> bool:
    """Whether what this compiler links holds the C++ library instead of asking for the shared one.

    False for a compiler that cannot be asked, which is then torch's to say.
    """
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "twice.so"
        try:
            command = [*shlex.split(compiler), "-shared", "-fPIC", "-x", "c++", "-", "-o", str(library)]
            subprocess.run(command, input=PROGRAM.encode(), capture_output=True, timeout=ANSWER_S, check=True)
            content = library.read_bytes()
        except (OSError, ValueError, subprocess.SubprocessError):
            return False
    return not any(name in content for name in SHARED_CXX)


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
