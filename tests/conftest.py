"""What holds for every test: one thread, no setting leaks in from outside, GPU tests only where there is a GPU."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests import compiler_limits
from tests.ahead import Ahead

_LEAKS = ("OPMODE_", "MLFLOW_", "DVC_")


def _outside_settings() -> list[str]:
    return [name for name in os.environ if name.startswith(_LEAKS)]


# before any test imports torch or mlflow; child processes inherit it
for _name in _outside_settings():
    del os.environ[_name]
os.environ |= {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MPLBACKEND": "Agg",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "1",
    "DVC_NO_ANALYTICS": "1",
}
# a stage's child process is `python -m ...`, wherever pytest itself was started from
os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
_KEPT = frozenset(_outside_settings())


@pytest.fixture(autouse=True)
def _no_outside_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting that one test made in os.environ does not reach the next."""
    for name in _outside_settings():
        if name not in _KEPT:
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _compiler_limits() -> Iterator[None]:
    """The recompile limit that a mode sets for its own process does not reach the next test."""
    with compiler_limits.kept():
        yield


@pytest.fixture(autouse=True)
def _gradients() -> Iterator[None]:
    """A command that a test calls turns gradients off for its own process, not for the next test."""
    torch = sys.modules.get("torch")  # a test that imports it first finds them on
    before = torch.is_grad_enabled() if torch else True
    yield
    if torch := sys.modules.get("torch"):
        torch.set_grad_enabled(before)


@pytest.fixture
def needs_packages() -> None:
    """Skip a test of AOTInductor's packages where they would crash the process, and say why."""
    from stages.modes.linking import no_shared_cxx

    if why := no_shared_cxx():
        pytest.skip(why)


@pytest.fixture(scope="session")
def _ahead(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ahead]:
    begun = Ahead(request.session.items, tmp_path_factory.mktemp("ahead"))
    yield begun
    begun.close()


@pytest.fixture
def ahead(request: pytest.FixtureRequest, _ahead: Ahead) -> Any:
    """What the function of the test's mark `ahead` returned."""
    return _ahead.result(request.node)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests marked `gpu` where torch sees no CUDA device, and say why."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    reason = _why_no_gpu() if marked else ""
    for item in marked if reason else []:
        item.add_marker(pytest.mark.skip(reason=reason))


def _why_no_gpu() -> str:
    import torch

    if torch.version.cuda is None:
        return f"needs CUDA: torch {torch.__version__} is a build without it"
    return "" if torch.cuda.is_available() else "needs CUDA: torch sees no device"
