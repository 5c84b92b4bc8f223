"""What a C++ compiler needs besides torch to build a package: a CUDA toolkit's headers, and the libraries torch has loaded.

AOTInductor links with `-lcuda` and names the toolkit's `lib64` alone, not its stubs (torch 2.11 and 2.13). The driver
puts `libcuda.so.1` where the loader finds it, which is often no folder of the linker's, and without `libcuda.so`.
A compiler that has the C++ library as an archive alone links it into the package. Two of them in one process end its
loading with an exception that nothing catches, a crash or a hang (seen with torch 2.11 and 2.13, GCC 12 and 13).
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

MAPS = Path("/proc/self/maps")
DEFAULT_TOOLKIT = Path("/usr/local/cuda")
CXX_LIBRARY = "libstdc++.so"
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


@contextmanager
def loaded_libraries_can_be_linked() -> Iterator[None]:
    """Let the linker find, after the user's own `LIBRARY_PATH`, the driver's and the C++ library that this process has loaded."""
    found, before = to_be_found(), os.environ.get("LIBRARY_PATH")
    if not found:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        for name, library in found.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).symlink_to(library)
        os.environ["LIBRARY_PATH"] = os.pathsep.join(filter(None, (before, folder)))
        try:
            yield
        finally:
            del os.environ["LIBRARY_PATH"]
            os.environ.update({} if before is None else {"LIBRARY_PATH": before})


def to_be_found() -> Mapping[Path, Path]:
    """Place in a folder of `LIBRARY_PATH` -> the loaded library that belongs there: what the linker would not find by itself."""
    places = {Path("libcuda.so"): loaded("libcuda.so")}
    if "/" not in _compiler_says(f"-print-file-name={CXX_LIBRARY}"):
        # GCC looks into its own folder, where the archive is, before it looks into one of LIBRARY_PATH, but not before this one below it
        own = Path(_compiler_says("-dumpmachine"), _compiler_says("-dumpversion"))
        places[own / CXX_LIBRARY] = loaded(CXX_LIBRARY)
    return {place: library for place, library in places.items() if library}


def loaded(name: str) -> Path | None:
    """Where this process has its `name.*` from; None where it has none, as that of the driver before CUDA is used."""
    lines = MAPS.read_text(encoding="utf-8").splitlines() if MAPS.exists() else []
    found = (Path(line.split(maxsplit=5)[-1]) for line in lines)
    return next((file for file in found if file.name.startswith(name)), None)


def _compiler_says(option: str) -> str:
    """What the compiler that Inductor takes answers; empty where it cannot be asked, which is then torch's to say."""
    try:
        command = [*shlex.split(os.environ.get("CXX") or "g++"), option]
        return subprocess.run(command, capture_output=True, timeout=ANSWER_S, check=False).stdout.decode(errors="replace").strip()
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
