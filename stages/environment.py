"""environment: what this machine is, as far as it decides results. Always re-run; byte-stable while nothing changed.

Every measuring stage depends on environment.json, so another GPU, driver or torch measures everything again; free
memory, temperature and host names are kept in the records instead. Reads params.yaml (`device`) and imports no torch.
Stops before anything is replaced: `device: cuda` without a GPU, a torch outside the range, no C++ compiler.

    python -m stages.environment
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from stages.core import atomic, kept_studies, paths, progress
from stages.core.errors import UserError, run_command
from stages.core.settings import read_params
from stages.instruments import assembler, hardware

TORCH_RANGE = ">=2.11,<2.16"
FACTS = {
    "graph_partition": (
        "2.11",
        "Inductor splits a graph around operators that cannot be captured; off the log, so counts come from launches",
    ),
    "trees_across_threads": ("2.12", "CUDAGraph Trees work from a Python thread that did not import torch (2.11 asserts)"),
    "rerecord_limit": ("2.12", "triton.cudagraph_unexpected_rerecord_limit is applied (dead code in 2.11)"),
    "profiler_graph_ids": (
        "2.12",
        "profiler events of kernels name their graph; else kernels are attributed by correlation of cudaGraphLaunch",
    ),
    "isolate_recompiles": ("2.13", "torch.compile(isolate_recompiles=) keeps the limits of two wrappers apart"),
}


def describe(device: str) -> dict[str, Any]:
    """environment.json for `device` (auto, cpu, cuda). Raises UserError when the machine cannot do what is asked."""
    torch_version, torch_cuda = _torch()
    gpu = hardware.visible_gpu()
    usable = gpu is not None and torch_cuda is not None
    if device == "cuda" and not usable:
        why = "no GPU found" if gpu is None else f"torch {torch_version} is a CPU build"
        raise UserError(
            "device", "cuda needs a GPU and a CUDA build of torch", why, "Use device: auto or cpu; records are kept as they were."
        )
    chosen = "cuda" if device in ("auto", "cuda") and usable else "cpu"
    on_gpu = gpu if chosen == "cuda" else None
    return {
        "device": chosen,
        "gpu": on_gpu.name if on_gpu else None,
        "gpu_memory_bytes": on_gpu.memory_bytes if on_gpu else None,
        "driver": on_gpu.driver if on_gpu else None,
        "cuda": on_gpu.cuda if on_gpu else None,
        "torch": torch_version,
        "torch_cuda": torch_cuda,
        "triton": _version("triton"),
        "ptxas": assembler.workers_version() if on_gpu else None,
        "python": platform.python_version(),
        "cpu": hardware.cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "platform": f"{platform.system()} {platform.machine()}",
        "compiler": _compiler(),
        "support": _support(torch_version) | (_one_assembler() if on_gpu else {}),
    }


def _support(torch_version: str) -> dict[str, Any]:
    return {name: {"supported": Version(torch_version) >= Version(since), "why": why} for name, (since, why) in FACTS.items()}


def _one_assembler() -> dict[str, Any]:
    """Whether torch's compile pool and the process itself assemble with the same ptxas when nobody names one."""
    pools, own = (assembler.version(found) for found in (assembler.torchs_ptxas(), assembler.tritons_ptxas()))
    why = "the compile pool and the process assemble with one ptxas"
    if differ := pools is not None and pools != own:
        why = (
            f"the compile pool assembles with torch's ptxas {pools}, the process with Triton's {own}: kernels are not found again "
            f"and compile anew in a warm start, unless {assembler.VARIABLE} names one of them (workers here: torch's)"
        )
    return {"one_ptxas": {"supported": not differ, "why": why}}


def _torch() -> tuple[str, str | None]:
    """torch's version and CUDA version, read from its files: importing it takes seconds."""
    found = importlib.util.find_spec("torch")
    version = _version("torch")
    if found is None or found.origin is None or version is None:
        raise UserError("torch", "must be installed", "nothing", "Run `make venv`, or install torch into this environment.")
    if not SpecifierSet(TORCH_RANGE).contains(Version(version).base_version):
        raise UserError("torch", f"must be {TORCH_RANGE}", version, "Install a release in that range.")
    text = (Path(found.origin).parent / "version.py").read_text(encoding="utf-8")
    match = re.search(r"^cuda[^=]*=\s*'([\d.]+)'", text, re.MULTILINE)
    return version, match.group(1) if match else None


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _compiler() -> str:
    candidates = [os.environ.get("CXX", ""), "g++", "clang++"]
    found = next((name for name in candidates if name and shutil.which(name)), None)
    if found is None:
        raise UserError(
            "compiler", "torch.compile needs a C++ compiler", "none of CXX, g++, clang++", "Install g++ (Debian: apt-get install g++)."
        )
    return Path(found).name


def main() -> None:
    """Write environment.json if it changed."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    params = read_params()
    if params.gate.baseline:
        kept_studies.study_file(params.gate.baseline)  # `gate` needs it once all is measured
    found = describe(params.device)
    progress.restart()
    atomic.write_json(paths.latest() / "environment.json", found)


if __name__ == "__main__":
    run_command(main)
