"""Content hashes of documents, and of the code that a stage runs."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

_DOTTED = re.compile(r"^stages(\.\w+)+(:\w+)?$")
_PACKAGE = Path(__file__).resolve().parents[1]


def of_document(document: Any) -> str:
    """Hash of a JSON-like document, independent of key order."""
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]


def of_file(file: Path) -> str:
    """Hash of a file's content."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def of_code(modules: Iterable[str]) -> str:
    """Hash of the import closure of `modules` inside this package; comments, docstrings and layout do not count.

    Imports inside functions count, and so do strings that name a module (`"stages.workers.timing"`): that is how
    a stage tells the worker what to run.
    """
    digest = hashlib.sha256()
    for name in closure(modules):
        digest.update(name.encode() + _meaning_of(name))
    return digest.hexdigest()[:16]


def closure(modules: Iterable[str]) -> list[str]:
    """The modules of this package that `modules` need, themselves among them, sorted."""
    found: set[str] = set()
    pending = list(modules)
    while pending:
        name = pending.pop()
        if name not in found and file_of(name):
            found.add(name)
            pending += _imports_of(name)
    return sorted(found)


def file_of(name: str) -> Path | None:
    """The file of a module or package of this package; None for what is none."""
    path = _PACKAGE.parent / Path(*name.split("."))
    return next((p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()), None)


@cache
def _tree_of(name: str) -> ast.Module:
    file = file_of(name)
    assert file, f"{name} is not a module of this package"
    return ast.parse(file.read_text(encoding="utf-8"))


@cache
def _meaning_of(name: str) -> bytes:
    tree = ast.parse(ast.unparse(_tree_of(name)))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and _is_docstring(body[0]):
            body[:] = body[1:] or [ast.Pass()]
    return ast.dump(tree).encode()


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@cache
def _imports_of(name: str) -> tuple[str, ...]:
    found: list[str] = []
    for node in ast.walk(_tree_of(name)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _DOTTED.match(node.value):
            found.append(node.value.split(":")[0])
    return tuple(module for module in found if module.split(".")[0] == "stages")
