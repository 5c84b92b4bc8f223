"""Studies to draw: the example, and what is left of it on poorer machines."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

HOSTILE = "<script>alert(1)</script>"
NASTY = 'a | b <img src=x onerror="alert(2)"> `c` $d$ **e** http://evil.example \x1b[31m\x00 ]]>'


@pytest.fixture(scope="session")
def _example_text() -> str:
    return (Path(__file__).parent / "example_study.json").read_text(encoding="utf-8")


@pytest.fixture
def example(_example_text: str) -> dict[str, Any]:
    """A GPU study of eight modes: one refuted, one wrong, one unavailable."""
    return json.loads(_example_text)


@pytest.fixture
def hostile(_example_text: str) -> dict[str, Any]:
    """The example with names and texts that try to leave their place."""
    study = json.loads(_example_text.replace('compile_cuda_graph"', f'{HOSTILE}"').replace('"dynamo"', '"$x_1$ | `y`"'))
    study["modes"]["max_autotune"]["reason"] = study["verdict"]["rejected"]["max_autotune"] = f"unavailable: {NASTY}"
    study["model"]["name"] = study["trace"]["name"] = study["verdict"]["configuration"] = NASTY + "\n````\n<b>x</b>"
    study["verdict"]["sentence"] = f"Run {HOSTILE}. {NASTY}"
    study["name"] = NASTY
    return study


@pytest.fixture
def cpu_study(example: dict[str, Any]) -> dict[str, Any]:
    """One set of processes on a CPU, so no interval; four modes that need a GPU."""
    study = _without_intervals(copy.deepcopy(example))
    study["environment"] |= {"device": "cpu", "gpu": None, "driver": None, "cuda": None}
    for name in ("cuda_graph", "compile_cuda_graph", "cudagraph_trees", "max_autotune_cuda_graph"):
        empty = dict.fromkeys(("evidence", "coverage", "memory", "lifetime"))
        study["modes"][name] = {"status": "unavailable", "reason": "a CPU has no CUDA graphs", "claim": {}, **empty}
    del study["attribution"]["inductor_trees"]
    for entry in study["attribution"]["inductor_manual"].values():
        if isinstance(entry, dict) and "total" in entry:
            entry |= dict.fromkeys(("total", "replay_alone", "kernels_given_replay", "replay_given_compiled", "interaction"))
            entry["missing"] = ["R: cuda_graph: unavailable"]
    study["verdict"] |= {"choices": {"60": {"2": {"mode": "undecided", "runner_up": None, "completions": 0.0, "reason": "equal"}}}}
    return study


@pytest.fixture
def bare_study() -> dict[str, Any]:
    """A study whose every measurement failed."""
    verdict = {"sentence": "Undecided: nothing ran.", "choices": {}, "recommended": {}, "rejected": {}}
    modes = {"eager": {"status": "failed", "reason": "warmup: out of memory", "startup": {}, "load": {}, "lifetime": None}}
    return {"schema_version": 1, "name": "bare", "baseline": "eager", "modes": modes, "verdict": verdict, "attribution": {}}


def _without_intervals(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: None if key in ("low", "high", "low_s", "high_s") else _without_intervals(value) for key, value in node.items()}
    return [_without_intervals(value) for value in node] if isinstance(node, list) else node
