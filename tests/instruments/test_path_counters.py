"""The counters on real compilations, in a process of its own: they wrap torch's classes for good."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
