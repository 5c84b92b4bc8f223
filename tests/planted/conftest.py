"""Fixtures of the planted faults, and what each record said, so that the outcomes can be written down as a table."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stages.core import atomic
from stages.environment import describe
from tests.ahead import FEW_BYTES
from tests.planted.planted_study import PlantedStudy, copy_project
from tests.workers.small_study import write_study

Make = Callable[..., PlantedStudy]
KINDS = ("fault", "twin")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Which faults a test plants, or is the healthy twin of, goes into its report (`tests.planted.outcomes`)."""
    for item in items:
        for kind in KINDS:
            if mark := item.get_closest_marker(kind):
                device = "cuda" if item.get_closest_marker("gpu") else _device(item)
                item.user_properties += [("kind", kind), ("faults", list(mark.args)), ("device", device)]


def _device(item: pytest.Item) -> str:
    """What PLANTED_DEVICE says, except for a fault that is one of a CPU."""
    return "cpu" if item.get_closest_marker("on_cpu") else os.environ.get("PLANTED_DEVICE", "cpu")


def planted(
    project: Path,
    home: Path,
    tell: Callable[[str, Any], None],
    mode: str = "dynamo",
    overrides: tuple[str, ...] = (),
    factorials: tuple[str, ...] = (),
    device: str = "cpu",
    trace: str = "smoke",
    **changes: Any,
) -> PlantedStudy:
    """A study of eager and one mode, with edits of that mode."""
    longer = ("measure.capture.max_launched_steps=400",)
    modes = dict.fromkeys(("eager", mode))
    write_study(home, *modes, factorials=factorials, overrides=(*longer, *overrides), trace=trace)
    small = PlantedStudy(home, project=project, tell=tell)
    if device != "cpu":
        atomic.write_json(small.folder / "environment.json", describe(device))
        for name in modes:
            small.edit(name, device=device, device_memory_bytes=FEW_BYTES)
        for name in factorials:
            small.edit(f"factorial/{name}", device=device)
    small.plant(mode, **changes)
    return small


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package with the planted modules in it; its caches are shared by every study of the session."""
    return copy_project(tmp_path_factory.mktemp("project"))


@pytest.fixture
def make(project: Path, tmp_path: Path, record_property: Callable[[str, Any], None], request: pytest.FixtureRequest) -> Make:
    """A study of eager and one mode, with edits of that mode: on the CPU, or on what PLANTED_DEVICE says."""
    return partial(planted, project, tmp_path, record_property, device=_device(request.node))
