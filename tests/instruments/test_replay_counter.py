"""A timed process carries one counter a replay and nothing of the ledger."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from stages.instruments.replay_counter import ReplayCounter

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = """
import json, logging
import torch
from torch._dynamo.output_graph import OutputGraph
from torch._inductor import compile_fx
from torch._inductor.cudagraph_trees import CUDAGraphTreeManager
from torch.cuda.graphs import CUDAGraph
from stages.workers.fitting import instruments_for

def state():
    owners = {"graph": CUDAGraph, "trees": CUDAGraphTreeManager, "dynamo": OutputGraph, "inductor": compile_fx}
    heard = ("recompiles", "graph_breaks", "cudagraphs")
    logs = [name for name in logging.root.manager.loggerDict if name.rpartition(".__")[2] in heard]
    handlers = {name: logging.getLogger(name).handlers[:] for name in logs}
    return {name: dict(vars(owner)) for name, owner in owners.items()} | {"logs": handlers}

def changed(mode, proof):
    before = state()
    made = sorted(instruments_for(mode, proof))
    after = state()
    return made, sorted(f"{owner}.{key}" for owner in after for key in after[owner] if after[owner][key] != before[owner].get(key))

launched, replayed = {"transform": "inductor", "replay": "none"}, {"transform": "none", "replay": "manual"}
print(json.dumps([changed(launched, False), changed(replayed, False), changed(replayed, True)]))
"""


@pytest.fixture(scope="module")
def found() -> list[Any]:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def test_timed_process_of_a_mode_that_launches_has_no_counter(found: list[Any]) -> None:
    assert found[0] == [["phases"], []]


def test_timed_process_of_a_mode_that_replays_counts_replays_alone(found: list[Any]) -> None:
    assert found[1] == [["phases", "replays"], ["graph.replay"]]


def test_proof_process_has_the_ledger_instead(found: list[Any]) -> None:
    made, changes = found[2]
    assert made == ["counters", "graph_memory", "log", "phases"]
    assert {"graph.replay", "trees.run", "dynamo.call_user_compiler", "inductor.cudagraphify"} <= set(changes)
    assert any(change.startswith("logs.") for change in changes)


def test_counter_counts_one_a_replay_and_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    replays: list[Any] = []
    monkeypatch.setattr(torch.cuda.CUDAGraph, "replay", replays.append)
    original, counter = torch.cuda.CUDAGraph.replay, ReplayCounter()
    counter.install()
    torch.cuda.CUDAGraph.replay("graph")  # type: ignore[arg-type]
    assert (counter.num, replays) == (1, ["graph"])
    counter.remove()
    assert torch.cuda.CUDAGraph.replay is original


@pytest.mark.gpu
def test_counter_sees_replays_of_ours_and_of_trees() -> None:
    x = torch.ones(8, device="cuda")
    trees = torch.compile(lambda value: value * 2 + 1, mode="reduce-overhead")
    for _ in range(3):
        trees(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x.mul(2)
    counter = ReplayCounter()
    counter.install()
    try:
        for _ in range(5):
            graph.replay()
            trees(x)
    finally:
        counter.remove()
    assert counter.num == 10
