"""Nothing stale is ever used: an artifact of another constant, weight layout, option or thread count misses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, sys
from pathlib import Path
import torch
import torch._dynamo
from torch._dynamo.utils import counters

action, file = sys.argv[1], Path(sys.argv[2])
torch.set_num_threads(1)


def call(alpha=0.5, layout="rows", **options):
    class Layer(torch.nn.Module):
        def forward(self, bias, inputs, weight):
            return torch.addmm(bias, inputs, weight, alpha=alpha)

    weight = torch.ones(8, 8) if layout == "rows" else torch.ones(8, 8).t().contiguous().t()
    inputs = torch.arange(16.0).reshape(2, 8)
    torch._dynamo.reset()
    counters.clear()
    with torch.no_grad():
        compiled = torch.compile(Layer(), options=options or None)(torch.zeros(8), inputs, weight)
        assert torch.allclose(compiled, alpha * inputs @ weight)
    found = counters["inductor"]
    return [found["fxgraph_cache_hit"], found["fxgraph_cache_miss"]]


if action == "save":
    call()
    file.write_bytes(torch.compiler.save_cache_artifacts()[0])
else:
    assert torch.compiler.load_cache_artifacts(file.read_bytes()) is not None
    found = {"same": call(), "constant": call(alpha=0.25), "layout": call(layout="columns"), "option": call(epilogue_fusion=False)}
    torch.set_num_threads(2)
    found["threads"] = call()
    print(json.dumps(found))
"""


def run(folder: Path, action: str) -> str:
    caches = {"TORCHINDUCTOR_CACHE_DIR": str(folder / action), "TRITON_CACHE_DIR": str(folder / action / "triton")}
    command = [sys.executable, "-c", PROGRAM, action, str(folder / "artifact.bin")]
    done = subprocess.run(command, env={**os.environ, **caches}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def look_ups(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[int]]:
    """[hits, misses] of each variant, in a new process with empty caches and the artifact."""
    folder = tmp_path_factory.mktemp("artifact")
    run(folder, "save")
    found: dict[str, list[int]] = json.loads(run(folder, "load").splitlines()[-1])
    return found


def test_the_same_graph_hits(look_ups: dict[str, list[int]]) -> None:
    assert look_ups["same"] == [1, 0]


@pytest.mark.parametrize("change", ["constant", "layout", "option"])
def test_whatever_else_changed_misses(change: str, look_ups: dict[str, list[int]]) -> None:
    assert look_ups[change] == [0, 1]


def test_another_thread_count_misses_where_torch_keys_it(look_ups: dict[str, list[int]]) -> None:
    """The key holds the CPU thread count since torch 2.13; before, opmode's own cache folders keep them apart."""
    import torch
    from packaging.version import Version

    expected = [0, 1] if Version(Version(torch.__version__).base_version) >= Version("2.13") else [1, 0]
    assert look_ups["threads"] == expected
