"""The house rules that no linter knows: sizes, names, docstrings, and files that must agree with one another."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from omegaconf import OmegaConf
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools import lock, set_up

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted((ROOT / "stages").rglob("*.py"))
CONFIGS = sorted((ROOT / "conf").rglob("*.yaml"))
NAMING_PYTHONS = ("README.md", "Makefile", "requirements.lock", "tools/lock.py", "tools/set_up.py")
DRAWERS = {"utils.py", "helpers.py", "common.py", "misc.py"}
WITHOUT_TORCH = ("environment", "compose", "trace", "attribution", "report", "publish", "keep", "compare", "gate")
IMPORT_EACH = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
    assert 'torch' not in sys.modules, f'{name} imports torch'
"""


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def requirements() -> list[Requirement]:
    asked = project()
    return [Requirement(text) for text in asked["dependencies"] + asked["optional-dependencies"]["dev"]]


def pins() -> dict[str, Version]:
    lines = [line for line in (ROOT / "requirements.lock").read_text().splitlines() if not line.startswith("#")]
    return {name: Version(version) for name, version in (line.split("==") for line in lines)}


def make_targets() -> dict[str, list[str]]:
    rules = re.findall(r"^([a-z-]+):(?!=)([^#\n]*)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return {name: needs.split() for name, needs in rules}


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_module_has_at_most_200_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 200


def test_no_module_is_a_drawer() -> None:
    folders = [ROOT / name for name in ("stages", "tests", "tools")]
    assert [relative(path) for folder in folders for path in folder.rglob("*.py") if path.name in DRAWERS] == []


def public_without_docstring(node: ast.AST) -> Iterator[str]:
    for child in getattr(node, "body", []):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not child.name.startswith("_"):
            if not ast.get_docstring(child):
                yield child.name
            if isinstance(child, ast.ClassDef):
                yield from public_without_docstring(child)


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_public_names_have_docstrings(path: Path) -> None:
    assert list(public_without_docstring(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize("path", CONFIGS, ids=relative)
def test_configuration_file_loads(path: Path) -> None:
    assert OmegaConf.is_dict(OmegaConf.load(path))


def test_configuration_targets_and_light_commands_import_no_torch() -> None:
    targets = {str(node["_target_"]) for node in map(OmegaConf.load, CONFIGS) if "_target_" in node}
    assert targets, "no file in conf/ names a target"
    modules = sorted({target.rpartition(".")[0] for target in targets} | {f"stages.{name}" for name in WITHOUT_TORCH})
    done = subprocess.run([sys.executable, "-c", IMPORT_EACH, *modules], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_readme_names_only_make_targets_that_exist() -> None:
    named = set(re.findall(r"(?:`|^\s*\$?\s*|&& )make ([a-z][a-z-]*)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert {"repro", "test"} <= named
    assert named <= set(make_targets())


def test_help_lists_every_target_of_the_user() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(re.findall(r"make ([a-z-]+) ", done.stdout)) == set(make_targets()) - {"git-tree"}


def test_ci_and_pre_commit_run_what_make_check_runs() -> None:
    checks = make_targets()["check"]
    script = (ROOT / ".ci" / "run").read_text()
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    assert [goal for line in re.findall(r"^make (.*)$", script, re.MULTILINE) for goal in line.split()] == checks
    assert [hook["entry"].removeprefix("make ") for hook in hooks] == checks


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_pin_is_inside_the_range(requirement: Requirement) -> None:
    assert requirement.specifier.contains(pins()[canonicalize_name(requirement.name)])


def test_requirements_in_names_what_pyproject_asks_for() -> None:
    lines = [line for line in (ROOT / "requirements.in").read_text().splitlines() if line and not line.startswith("#")]
    assert {Requirement(line).name for line in lines} == {requirement.name for requirement in requirements()}


def test_every_place_that_names_the_pythons_names_those_of_pyproject() -> None:
    asked = SpecifierSet(project()["requires-python"])
    taken = [f"3.{minor}" for minor in range(30) if f"3.{minor}" in asked]
    said = {path: re.findall(r"3\.\d+ (?:to|or|and|-) 3\.\d+", (ROOT / path).read_text()) for path in NAMING_PYTHONS}
    assert said == {path: [f"{taken[0]} to {taken[-1]}"] * len(said[path]) for path in NAMING_PYTHONS}
    assert all(said.values())
    assert tuple(tuple(map(int, version.split("."))) for version in (taken[0], taken[-1])) == (set_up.OLDEST, set_up.NEWEST)
    assert list(lock.PYTHONS) == taken
    assert f'python_version = "{taken[0]}"' in (ROOT / "pyproject.toml").read_text()


def test_version_is_the_same_in_package_and_changelog() -> None:
    import stages

    assert stages.__version__ == project()["version"]
    assert f"## [{stages.__version__}]" in (ROOT / "CHANGELOG.md").read_text()
