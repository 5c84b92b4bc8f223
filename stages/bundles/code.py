"""The code that a bundle carries: every module that reproducing needs, and the packages that those import."""

from __future__ import annotations

import ast
import importlib.metadata
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stages.core import digest, paths

DRIVERS = (
    "stages.instruments.assembler",
    "stages.workers.starting",
    "stages.workers.walking",
    "stages.workers.evidence",
    "stages.workers.profiling",
)
MORE = {"failed": (), "refuted": (), "wrong": ("stages.workers.checking",), "slower": ("stages.workers.timing",)}
LARGEST_FILE_BYTES = 64 << 20


def modules_for(kind: str, nodes: Iterable[dict[str, Any]]) -> list[str]:
    """The import closure of what drives a service of that fault, of the targets of these configuration nodes, and of the package itself."""
    targets = [str(node["_target_"]).rpartition(".")[0] for node in nodes]
    return digest.closure(["stages", *DRIVERS, *MORE[kind], *targets])


def copy_modules(modules: Iterable[str], folder: Path) -> None:
    """The modules under the names that they have, with the packages that hold them."""
    for name in modules:
        parts = name.split(".")
        for package in (".".join(parts[:end]) for end in range(1, len(parts) + 1)):
            file = digest.file_of(package)
            if file:
                _copy(file, folder / file.relative_to(_package_parent()))


def copy_files(files: Iterable[Path], folder: Path) -> list[str]:
    """Weights and the like below the project's root, where they are small; the names of those left out."""
    left_out = []
    for file in files:
        if file.is_relative_to(paths.root()) and file.stat().st_size <= LARGEST_FILE_BYTES:
            _copy(file, folder / file.relative_to(paths.root()))
        else:
            left_out.append(str(file))
    return left_out


def requirements(modules: Iterable[str]) -> list[str]:
    """Pins of the distributions that the modules import, torch among them, sorted."""
    imported = {name for module in modules for name in _imports(module)} - set(sys.stdlib_module_names) - {"stages"}
    owners = importlib.metadata.packages_distributions()
    distributions = {distribution for name in imported for distribution in owners.get(name, [])}
    return sorted(f"{name}=={importlib.metadata.version(name)}" for name in distributions)


def _imports(module: str) -> set[str]:
    file = digest.file_of(module)
    tree = ast.parse(file.read_text(encoding="utf-8")) if file else ast.Module([], [])
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {name.split(".")[0] for name in names}


def _package_parent() -> Path:
    return Path(digest.__file__).resolve().parents[2]


def _copy(file: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, target)
