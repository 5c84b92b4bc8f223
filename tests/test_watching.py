"""What watch sees of a program's steps becomes a trace; docs/watching.md works as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stages.core.errors import UserError
from stages.traces.canonical import Canonical
from stages.watch import main, run, watch
from tests.python_path import python_path
from tests.workers.small_study import write_study

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # torch's own, when Inductor is imported

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "watching.md").read_text(encoding="utf-8")
SERVE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]


def lines(file: Path) -> list[tuple[int, int]]:
    return [(one.prompt_tokens, one.output_tokens) for one in Canonical("canonical", str(file)).requests()]


def watched(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    (folder / "serve.py").write_text(program)
    command = [sys.executable, "-m", "stages.watch", "--trace-out", "served.csv", "--", "serve.py"]
    environment = {**os.environ, **python_path(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=240)


def test_page_s_program_becomes_the_trace_that_it_served_and_a_study_takes_it(tmp_path: Path) -> None:
    done = watched(tmp_path, SERVE)
    assert done.returncode == 0, done.stderr
    shown = re.findall(r"```\n(watch:.*?)```", PAGE, re.DOTALL)[0]
    assert [line for line in shown.splitlines() if line not in done.stderr] == []
    assert lines(tmp_path / "served.csv") == [(8, 5), (12, 3), (8, 4), (12, 6)]
    small = write_study(tmp_path / "study", "eager", trace="canonical", overrides=(f"trace.path={tmp_path / 'served.csv'}",))
    assert (small.study.plan.num_requests, small.study.plan.prompt_sizes) == (4, [32])


def test_eager_program_is_seen_too_and_positions_are_no_tokens(tmp_path: Path) -> None:
    import torch

    tokens, positions = torch.nn.Embedding(50, 4), torch.nn.Embedding(16, 4)

    def step(ids: Any) -> Any:
        return tokens(ids) + positions(torch.arange(ids.shape[1])[None])

    with watch() as ledger:
        for length in (6, 9):
            step(torch.zeros(2, length, dtype=torch.int64))
            step(torch.zeros(2, 1, dtype=torch.int64))
        assert ledger.write_trace(tmp_path / "served.csv") == 4
    assert lines(tmp_path / "served.csv") == [(6, 2), (6, 2), (9, 2), (9, 2)]


def test_command_says_why_there_is_no_trace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with watch() as ledger:
        pass
    summary = ledger.summary() | {"num_requests": 0, "trace_refused": "served.csv: a trace needs prompts that arrive at two times at least"}
    monkeypatch.setattr("stages.watch.run", lambda *_: (0, summary))
    monkeypatch.setattr(sys, "argv", ["watch", "--trace-out", "served.csv", "--", "serve.py"])
    assert main() == 0
    assert capsys.readouterr().err.splitlines()[-1] == f"watch: no trace: {summary['trace_refused']}"


def test_a_trace_that_could_not_be_written_is_known_before_the_program_runs(tmp_path: Path) -> None:
    script, ran = tmp_path / "serve.py", tmp_path / "ran"
    script.write_text(f"open({str(ran)!r}, 'w')\n")
    with pytest.raises(OSError, match="File exists"):
        run([str(script)], script / "served.csv")
    assert not ran.exists()


def test_restart_leaves_the_warm_up_out_of_the_trace(tmp_path: Path) -> None:
    import torch

    table = torch.nn.Embedding(50, 4)
    with watch() as ledger:
        table(torch.zeros(1, 30, dtype=torch.int64))
        ledger.restart()
        with pytest.raises(UserError, match=r"^served\.csv: a trace needs prompts .* got 0 requests at 0 times"):
            ledger.write_trace("served.csv")


def test_watching_makes_nothing_compile_again() -> None:
    import torch

    table = torch.nn.Embedding(50, 4)

    def step(ids: Any) -> Any:
        return table(ids) + 1

    def graphs() -> int:
        return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])

    torch._dynamo.reset()
    ids = torch.zeros(1, 3, dtype=torch.int64)
    before = torch.compile(step, backend="eager")
    before(ids)
    with watch() as ledger:
        before(ids)
        assert ledger.counts()["num_compilations"] == 0
        during = torch.compile(lambda given: step(given) * 2, backend="eager")
        during(ids)
    seen, compiled = len(ledger.shapes.seen), graphs()
    during(ids)
    before(ids)
    assert (len(ledger.shapes.seen), graphs()) == (seen, compiled)


@pytest.mark.gpu
def test_replay_counts_as_the_step_that_its_capture_saw(tmp_path: Path) -> None:
    import torch

    table = torch.nn.Embedding(50, 4, device="cuda").requires_grad_(False)
    trees = torch.compile(lambda ids: table(ids) + 1, mode="reduce-overhead", dynamic=False)
    prompts = torch.zeros(1, 9, dtype=torch.int64, device="cuda")
    with watch() as ledger:
        graph = torch.cuda.CUDAGraph()
        table(prompts[:, :1])
        with torch.cuda.graph(graph):
            table(prompts[:, :1])
        for _ in range(3):
            trees(prompts)
        ledger.restart()
        for _ in range(2):
            trees(prompts)
            graph.replay()
            graph.replay()
        ledger.write_trace(tmp_path / "served.csv")
    assert lines(tmp_path / "served.csv") == [(9, 3), (9, 3)]
