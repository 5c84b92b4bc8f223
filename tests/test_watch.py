"""watch sees what torch really did, says why, and leaves torch as it was."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages.core.errors import UserError
from stages.watch import ExpectationFailed, Ledger, lines, run, watch

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # torch's own, when Inductor is imported

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = """
import sys
import torch

double = torch.compile(lambda x: x + x, backend="eager", dynamic=False)
double(torch.ones(2))
double(torch.ones(3))
print("served", sys.argv[1:])
"""


def compiled(backend: str = "eager") -> Any:
    import torch

    def double(x: torch.Tensor) -> torch.Tensor:
        return x + x

    return torch.compile(double, backend=backend, dynamic=False)


def ones(size: int) -> Any:
    import torch

    return torch.ones(size)


@pytest.fixture(autouse=True)
def _nothing_compiled_before() -> None:
    import torch

    torch._dynamo.reset()


def test_recompile_for_a_second_shape_is_seen_with_its_guard() -> None:
    with watch() as ledger:
        double = compiled()
        double(ones(2))
        double(ones(3))
        double(ones(3))
    counts = ledger.counts()
    assert (counts["num_compilations"], counts["num_recompiles"], counts["num_compiled_calls"]) == (2, 1, 3)
    assert "expected 2, actual 3" in ledger.reasons()["recompiles"][0]


def test_recompile_limit_is_counted_with_the_function_that_reached_it() -> None:
    with watch() as ledger:
        double = compiled()
        for size in range(2, 13):
            double(ones(size))
        with pytest.raises(ExpectationFailed, match=r"num_recompile_limits: expected 0, counted 1\n.*recompile_limit"):
            ledger.expect(num_recompile_limits=0)
    assert ledger.counts()["num_compiled_calls"] == 8


def test_graph_break_is_counted_with_its_place() -> None:
    import torch

    def halved(x: torch.Tensor) -> torch.Tensor:
        if x.sum() > 0:
            return x / 2
        return x

    with watch() as ledger:
        torch.compile(halved, backend="eager")(ones(4))
    assert ledger.counts()["num_graph_breaks"] == 1
    assert "test_watch.py" in ledger.reasons()["graph_breaks"][0]


def test_expectation_fails_with_the_reason_that_torch_gave() -> None:
    with watch() as ledger:
        double = compiled()
        double(ones(2))
        ledger.restart()
        double(ones(5))
        with pytest.raises(ExpectationFailed, match=r"num_recompiles: expected 0, counted 1\n(.*\n)*.*expected 2, actual 5") as raised:
            ledger.expect(num_recompiles=0)
    assert len(raised.value.reasons) == 1


def test_healthy_twin_meets_the_same_expectation() -> None:
    with watch() as ledger:
        double = compiled()
        double(ones(2))
        ledger.restart()
        double(ones(2))
        ledger.expect(num_recompiles=0, num_compilations=0, num_graph_breaks=0, num_compiled_calls=1)


def test_compiled_calls_are_no_replays() -> None:
    with watch() as ledger:
        compiled()(ones(2))
    with pytest.raises(ExpectationFailed, match=r"replayed share: expected at least 0\.99, counted 0"):
        ledger.expect(min_replayed=0.99)


def test_nothing_that_ran_is_no_replay_either() -> None:
    with watch() as ledger:
        ones(2).add(1)
    with pytest.raises(ExpectationFailed, match="nothing compiled or replayed ran"):
        ledger.expect(min_replayed=0.0)


def test_cuda_graph_that_a_cpu_cannot_have_is_a_skip() -> None:
    with watch() as ledger:
        compiled("cudagraphs")(ones(2))
    assert ledger.counts()["num_cudagraph_skips"] == 1
    assert ledger.counts()["num_replays"] == 0


WRONG_SHARES = (99, 1.01, -0.1, float("nan"), float("inf"), "0.99", True)
WRONG_COUNTS = (-1, 0.5, float("nan"), "0", None, False)


@pytest.mark.parametrize("share", WRONG_SHARES)
def test_what_is_no_share_is_refused_by_name(share: Any) -> None:
    with pytest.raises(UserError, match=rf"^min_replayed: must be a share from 0 to 1; got {share}\. For 99 % write min_replayed=0\.99"):
        Ledger().expect(min_replayed=share)


@pytest.mark.parametrize("expected", WRONG_COUNTS)
def test_what_is_no_count_is_refused_by_name(expected: Any) -> None:
    with pytest.raises(UserError, match=rf"^num_replays: must be a whole number, 0 or more; got {expected}\. .* write num_replays=0"):
        Ledger().expect(num_replays=expected, num_recompiles=0)


def test_ends_of_a_share_and_numbers_of_numpy_are_taken() -> None:
    with pytest.raises(ExpectationFailed, match="num_replays: expected 1, counted 0\nreplayed share: expected at least 1"):
        Ledger().expect(num_recompiles=np.int64(0), num_replays=np.int64(1), min_replayed=np.float64(1))


def test_unknown_count_is_refused() -> None:
    with watch() as ledger, pytest.raises(TypeError, match=r"num_recompilations; there are .*num_recompiles"):
        ledger.expect(num_recompilations=0)


def test_share_tells_manual_replays_trees_and_plain_calls_apart() -> None:
    ledger = Ledger()
    seen = {"replay": 16, "tree_replay": 8, "tree_record": 1, "tree_run": 10, "compiled_call": 13, "tree_call": 10}
    ledger.counters.counts.update(seen)
    assert ledger.replayed_share() == (7 + 8) / (7 + 10 + 3)


def test_torch_is_left_as_it_was() -> None:
    import torch
    import torch._dynamo.output_graph as output_graph
    import torch._inductor.compile_fx as compile_fx
    import torch._logging._internal as internal
    from torch._inductor.cudagraph_trees import CUDAGraphTreeManager
    from torch.cuda.graphs import CUDAGraph

    owners: list[Any] = [CUDAGraph, CUDAGraphTreeManager, output_graph.OutputGraph, compile_fx, torch.nn.Embedding]
    names = [name for name in logging.root.manager.loggerDict if name.startswith("torch")]

    def state() -> list[Any]:
        loggers = [(name, list(one.handlers), one.level, one.propagate) for name in names for one in [logging.getLogger(name)]]
        return [*(dict(vars(owner)) for owner in owners), set(internal.log_state.artifact_names), loggers]

    before = state()
    seen = []

    def broken() -> None:
        with watch():
            seen.append(state())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert seen != [before]
    assert state() == before


def test_counts_stand_still_once_the_watch_is_over() -> None:
    with watch() as ledger:
        double = compiled()
        double(ones(2))
    during = ledger.summary()
    double(ones(2))
    assert ledger.summary() == during


def test_import_of_watch_imports_no_torch() -> None:
    code = "import sys, stages.watch; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_command_prints_the_counts_and_keeps_the_program_s_output(tmp_path: Path) -> None:
    script = tmp_path / "serve.py"
    script.write_text(PROGRAM + "sys.exit(7)")
    command = [sys.executable, "-m", "stages.watch", "--", str(script), "--port", "1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (7, "served ['--port', '1']\n")
    assert "     1 recompiles\n" in done.stderr
    assert "expected 2, actual 3" in done.stderr


def test_module_form_runs_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "server.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    status, summary = run(["-m", "server"])
    assert status == 0
    assert summary is not None
    assert (summary["num_recompiles"], summary["num_compiled_calls"]) == (1, 2)
    assert any("replayed share 0.0%" in line for line in lines(summary))


def test_program_that_a_signal_ends_has_no_counts(tmp_path: Path) -> None:
    script = tmp_path / "dies.py"
    script.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    assert run([sys.executable, str(script)]) == (137, None)


@pytest.mark.parametrize("command", [[], ["python"], ["nothing.py"], ["-m"]])
def test_what_is_no_python_program_is_refused(command: list[str]) -> None:
    with pytest.raises(UserError, match="must be a Python script or -m and a module"):
        run(command)


@pytest.mark.gpu
def test_manual_capture_and_trees_replay_every_call_after_warm_up() -> None:
    import torch

    x = torch.ones(8, device="cuda")
    with watch() as ledger:
        trees = torch.compile(lambda value: value * 2 + 1, mode="reduce-overhead")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            x.mul(2)
        for _ in range(3):
            trees(x)
        # one is ours and one the recording; the empty graph that Trees' manager keeps its pool alive with is none of the user's
        assert (ledger.counts()["num_captures"], ledger.counts()["num_recordings"]) == (2, 1)
        ledger.restart()
        for _ in range(5):
            graph.replay()
            trees(x)
        ledger.expect(num_recompiles=0, num_captures=0, num_recordings=0, num_replays=10, min_replayed=1.0)


def test_interpreter_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "serve.py").write_text("print(1)\n")
    with pytest.raises(UserError, match=r"must start with a Python that is installed, or with the script; got python3.99"):
        run(["python3.99", str(tmp_path / "serve.py")])
