"""One ptxas for all kernels of a worker, whoever compiles them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stages import environment
from stages.instruments import assembler, hardware
from tests.test_environment import H200


def ptxas(folder: Path, version: str) -> Path:
    """A program that says what ptxas says."""
    file = folder / "ptxas"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {version[:4]}, V{version}'\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def carried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path | None]:
    """What torch and Triton carry: torch 13.0.88, Triton 12.8.93; nobody names one."""
    found: dict[str, Path | None] = {"torch": ptxas(tmp_path / "torch", "13.0.88"), "triton": ptxas(tmp_path / "triton", "12.8.93")}
    monkeypatch.delenv(assembler.VARIABLE, raising=False)
    monkeypatch.setattr(assembler, "torchs_ptxas", lambda: found["torch"])
    monkeypatch.setattr(assembler, "tritons_ptxas", lambda: found["triton"])
    assembler.version.cache_clear()
    return found


def test_workers_are_given_torchs(carried: dict[str, Path | None]) -> None:
    assert assembler.variables() == {"TRITON_PTXAS_PATH": str(carried["torch"])}
    assert assembler.workers_version() == "13.0.88"


def test_one_that_the_user_names_is_kept(carried: dict[str, Path | None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(carried["triton"]))
    assert assembler.variables() == {}
    assert assembler.workers_version() == "12.8.93"


def test_torch_that_carries_none_leaves_tritons(carried: dict[str, Path | None]) -> None:
    carried["torch"] = None
    assert (assembler.variables(), assembler.workers_version()) == ({}, "12.8.93")
    carried["triton"] = None
    assert assembler.workers_version() is None


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 3\n", "#!/bin/sh\necho nothing\n", "no program"])
def test_what_does_not_say_its_version_has_none(text: str, tmp_path: Path) -> None:
    file = ptxas(tmp_path, "1.0")
    file.write_text(text)
    assert assembler.version(file) is None
    assert assembler.version(tmp_path / "not there") is None


def test_package_is_looked_into_without_being_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "carrier").mkdir()
    (tmp_path / "carrier" / "__init__.py").write_text("raise AssertionError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert assembler._executable("carrier", "bin/ptxas") is None
    file = ptxas(tmp_path / "carrier" / "bin", "13.1.1")
    assert assembler._executable("carrier", "bin/ptxas") == file
    file.chmod(0o644)
    assert assembler._executable("carrier", "bin/ptxas") is None
    assert assembler._executable("no_such_package", "bin/ptxas") is None


@pytest.mark.parametrize(("tritons", "supported"), [("12.8.93", False), ("13.0.88", True)])
def test_environment_says_which_it_is_and_whether_there_are_two(
    tritons: str, supported: bool, carried: dict[str, Path | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried["triton"] = ptxas(tmp_path / "another", tritons)
    monkeypatch.setattr(hardware, "visible_gpu", lambda: H200)
    monkeypatch.setattr(environment, "_torch", lambda: ("2.13.0", "13.0"))
    found = environment.describe("cuda")
    fact = found["support"]["one_ptxas"]
    assert (found["ptxas"], fact["supported"]) == ("13.0.88", supported)
    assert ("unless TRITON_PTXAS_PATH names one of them" in fact["why"]) is not supported
    on_cpu = environment.describe("cpu")
    assert on_cpu["ptxas"] is None
    assert "one_ptxas" not in on_cpu["support"]


@pytest.mark.gpu
def test_compile_pool_and_process_find_each_others_kernels(tmp_path: Path) -> None:
    """With one ptxas, kernels that the pool made are those that a process without it would make: a second start adds none."""
    code = (
        "import sys, torch, time\n"
        "from torch._inductor.async_compile import AsyncCompile\n"
        "ready = sys.argv[1] == 'pool'\n"
        "while ready and not AsyncCompile.use_process_pool(): time.sleep(0.1)\n"
        "torch._inductor.config.compile_threads = 8 if ready else 1\n"
        "torch._inductor.config.fx_graph_cache = False\n"
        "torch.compile(lambda x: (x.sin() + x).softmax(-1))(torch.ones(64, 640, device='cuda'))\n"
    )
    caches = {"TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "inductor"), "TRITON_CACHE_DIR": str(tmp_path / "triton")}
    made = []
    for who in ("pool", "process"):
        subprocess.run([sys.executable, "-c", code, who], env={**os.environ, **caches, **assembler.variables()}, check=True, timeout=240)
        made.append({file.parent.name for file in (tmp_path / "triton").rglob("triton_*.cubin")})
    assert made[0]
    assert made[1] == made[0]
