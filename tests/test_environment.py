"""environment: what the machine is; it stops before anything is replaced."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from stages import environment
from stages.core.errors import UserError
from stages.instruments import hardware
from stages.instruments.hardware import GPU

ROOT = Path(__file__).resolve().parents[1]
PARAMS = {"name": "a", "model": "tiny", "trace": "smoke", "modes": ["eager"], "factorials": [], "measure": "smoke"}
H200 = GPU(name="NVIDIA H200", uuid="GPU-1", memory_bytes=150_000_000_000, free_bytes=1, driver="580.1", cuda="13.0")


def run(home: Path, code: str = "", **params: Any) -> subprocess.CompletedProcess[str]:
    """The command in a study of its own; `code` runs before it."""
    (home / "params.yaml").write_text(yaml.safe_dump({**PARAMS, **params}))
    variables = {"OPMODE_PARAMS": str(home / "params.yaml"), "OPMODE_STUDY": str(home / "study"), "OPMODE_BUILD": str(home / "build")}
    script = f"{code}\nfrom stages.core.errors import run_command\nfrom stages.environment import main\nrun_command(main)"
    command = [sys.executable, "-c", script] if code else [sys.executable, "-m", "stages.environment"]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **variables}, capture_output=True, text=True, check=False)


def test_same_machine_is_the_same_bytes(tmp_path: Path) -> None:
    file = tmp_path / "study" / "environment.json"
    assert run(tmp_path, device="cpu").returncode == 0
    first = file.read_bytes()
    assert run(tmp_path, device="cpu").returncode == 0
    assert file.read_bytes() == first
    found = json.loads(first)
    assert (found["device"], found["gpu"], found["driver"]) == ("cpu", None, None)
    assert set(found["support"]) == set(environment.FACTS)
    assert "hostname" not in found


def test_pipeline_that_begins_has_done_nothing_yet(tmp_path: Path) -> None:
    journal = tmp_path / "build" / "progress.json"
    journal.parent.mkdir()
    journal.write_text('{"seconds": {"load@eager": 5}, "done": ["load@eager"]}')
    assert run(tmp_path, device="cpu").returncode == 0
    assert json.loads(journal.read_text()) == {"seconds": {"load@eager": 5}, "done": []}


def test_baseline_of_the_gate_must_be_there_before_anything_is_measured(tmp_path: Path) -> None:
    done = run(tmp_path, device="cpu", gate={"baseline": "never-kept"})
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("error: study: must be one of latest, ")
    assert "got never-kept" in done.stderr
    assert not (tmp_path / "study" / "environment.json").exists()
    assert run(tmp_path, device="cpu", gate={"baseline": "cpu-known-answer"}).returncode == 0


def test_torch_is_not_imported(tmp_path: Path) -> None:
    code = "import atexit, sys\natexit.register(lambda: print('torch' in sys.modules))"
    assert run(tmp_path, code, device="cpu").stdout == "False\n"


@pytest.mark.skipif(hardware.visible_gpu() is not None, reason="this machine has a GPU")
def test_cuda_without_a_gpu_is_one_line_and_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "study" / "environment.json"
    file.parent.mkdir()
    file.write_text("as it was")
    done = run(tmp_path, device="cuda")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("error: device: cuda needs a GPU and a CUDA build of torch; got no GPU found. Use device: auto or cpu")
    assert file.read_text() == "as it was"


def test_no_compiler_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(
        UserError, match=r"compiler: torch.compile needs a C\+\+ compiler; got none of CXX, g\+\+, clang\+\+. Install g\+\+"
    ):
        environment.describe("cpu")


def test_compiler_that_the_user_names_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "my-compiler"
    compiler.write_text("#!/bin/sh\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CXX", str(compiler))
    assert environment.describe("cpu")["compiler"] == "my-compiler"


@pytest.mark.parametrize("version", ["2.10.0", "2.16.0", "1.13.1+cu117"])
def test_torch_outside_the_range_is_refused(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_version", lambda package: version)
    with pytest.raises(UserError, match=rf"torch: must be >=2.11,<2.16; got {version.replace('+', '.')}. Install"):
        environment.describe("cpu")


@pytest.mark.parametrize("version", ["2.11.0", "2.13.0+cpu", "2.15.1a0+git123"])
def test_torch_inside_the_range_is_taken_and_decides_what_is_supported(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_version", lambda package: version)
    support = environment.describe("cpu")["support"]
    assert {name for name, fact in support.items() if not fact["supported"]} == (
        {"trees_across_threads", "rerecord_limit", "profiler_graph_ids", "isolate_recompiles"} if version.startswith("2.11") else set()
    )


def test_torch_that_is_not_installed_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "_version", lambda package: None)
    with pytest.raises(UserError, match=r"torch: must be installed; got nothing. Run `make venv`"):
        environment.describe("cpu")


def with_gpu(monkeypatch: pytest.MonkeyPatch, torch_cuda: str | None) -> None:
    monkeypatch.setattr(hardware, "visible_gpu", lambda: H200)
    monkeypatch.setattr(environment, "_torch", lambda: ("2.13.0", torch_cuda))


@pytest.mark.parametrize(
    ("device", "chosen", "gpu"), [("auto", "cuda", "NVIDIA H200"), ("cuda", "cuda", "NVIDIA H200"), ("cpu", "cpu", None)]
)
def test_gpu_is_described_only_where_it_is_used(device: str, chosen: str, gpu: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpu(monkeypatch, "13.0")
    found = environment.describe(device)
    assert (found["device"], found["gpu"]) == (chosen, gpu)
    assert "GPU-1" not in json.dumps(found)


def test_gpu_with_a_cpu_build_of_torch_is_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    with_gpu(monkeypatch, None)
    assert environment.describe("auto")["device"] == "cpu"
    with pytest.raises(UserError, match=r"device: cuda needs .*; got torch 2.13.0 is a CPU build"):
        environment.describe("cuda")


def test_cuda_version_of_torch_is_read_from_its_files() -> None:
    import torch

    assert environment._torch() == (torch.__version__, torch.version.cuda)
