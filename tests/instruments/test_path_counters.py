"""The counters on real compilations, in a process of its own: they wrap torch's classes for good."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stages.instruments.path_counters import PathCounters

SCRIPT = """
import json, warnings
warnings.simplefilter("ignore")
import torch
from stages.instruments.compile_phases import CompilePhases
from stages.instruments.compiler_log import CompilerLog
from stages.instruments.path_counters import PathCounters

counters, log, phases = PathCounters(), CompilerLog(), CompilePhases()
for instrument in (counters, log, phases):
    instrument.install()

def step(x):
    return x * 2 + 1

def broken(x):
    x = x + 1
    torch._dynamo.graph_break()
    return x * 2

seen = {}

def did(name, work):
    before = counters.snapshot()
    work()
    seen[name] = {key: count for key, count in (counters.snapshot() - before).items() if ":" not in key}

compiled = torch.compile(step, backend="eager", dynamic=False)
two, three = torch.ones(2), torch.ones(3)
did("eager", lambda: step(two))
did("first", lambda: compiled(two))
did("second", lambda: [compiled(two) for _ in range(5)])
did("other shape", lambda: compiled(three))
did("graph break", lambda: torch.compile(broken, backend="eager")(two))
print(json.dumps({"seen": seen, "missing": counters.missing, "backends": counters.backends, "lines": log.lines,
                  "skips": log.skips(), "dynamo_s": phases.seconds["dynamo_s"], "phases": phases.missing}))
"""


class Graph:
    """A CUDAGraph that only begins captures."""

    def capture_begin(self) -> None:
        """Nothing is captured."""

    def replay(self) -> None:
        """Nothing is replayed."""


class Manager:
    """CUDAGraph Trees' manager: an empty capture keeps its pool alive, then one more a recording."""

    def __init__(self) -> None:
        Graph().capture_begin()

    def record_function(self) -> None:
        Graph().capture_begin()

    def run_eager(self) -> None: ...

    def execute_node(self) -> None: ...

    def run(self) -> None: ...


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> Iterator[PathCounters]:
    """Installed on stand-ins for torch's classes, whose wrappers are therefore none of torch's."""
    monkeypatch.setattr("torch.cuda.graphs.CUDAGraph", Graph)
    monkeypatch.setattr("torch._inductor.cudagraph_trees.CUDAGraphTreeManager", Manager)
    installed = PathCounters()
    installed.install()
    yield installed
    installed.remove()


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # torch's own, when Inductor is imported
def test_empty_capture_of_a_manager_of_trees_is_not_counted_and_others_are(counters: PathCounters) -> None:
    manager = Manager()
    assert counters.snapshot()["capture"] == 0
    manager.record_function()
    Graph().capture_begin()
    assert (counters.snapshot()["capture"], counters.snapshot()["tree_record"], counters.missing) == (2, 1, [])
    counters.remove()
    Graph().capture_begin()
    assert counters.snapshot()["capture"] == 2


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_every_counted_name_exists_in_this_torch(found: dict[str, Any]) -> None:
    assert (found["missing"], found["phases"]) == ([], "")


@pytest.mark.parametrize(
    ("work", "counts"),
    [
        ("eager", {}),
        ("first", {"compilation": 1, "compiled_call": 1}),
        ("second", {"compiled_call": 5}),
        ("other shape", {"compilation": 1, "compiled_call": 1}),
        ("graph break", {"compilation": 2, "compiled_call": 2, "graph_break": 1}),
    ],
)
def test_calls_and_compilations_are_counted(found: dict[str, Any], work: str, counts: dict[str, int]) -> None:
    assert found["seen"][work] == counts


def test_backend_is_named_for_every_compilation(found: dict[str, Any]) -> None:
    assert set(found["backends"].values()) == {"eager"}
    assert {"0/0", "0/1"} <= set(found["backends"])


def test_log_says_why_it_compiled_again_and_where_the_graph_broke(found: dict[str, Any]) -> None:
    assert any("size mismatch" in line for line in found["lines"]["recompiles"])
    assert len(found["lines"]["graph_breaks"]) >= 1
    assert found["skips"] == []


def test_seconds_of_dynamo_are_seen(found: dict[str, Any]) -> None:
    assert found["dynamo_s"] > 0
