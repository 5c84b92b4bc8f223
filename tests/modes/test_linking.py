"""A package is linked with the driver's library that is loaded, wherever it is; what is lacking is said."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from stages.core.build import build
from stages.modes import linking
from tests.workers.conftest import node


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A driver's library in a folder that no linker knows, loaded by this process."""
    library = tmp_path / "a driver" / "libcuda.so.580.95.05"
    library.parent.mkdir()
    compiled(library, "int opmode_only_here(void) { return 0; }\n", "-Wl,-soname,libcuda.so.1")
    maps = tmp_path / "maps"
    maps.write_text(
        f"7f00-7f01 rw-p 00000000 00:00 0\n7f01-7f02 r-xp 00000000 fd:00 42    /lib/libc.so.6\n7f02-7f03 r-xp 0 fd:0 43   {library}\n"
    )
    monkeypatch.setattr(linking, "MAPS", maps)
    return library


def compiled(file: Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = ["g++", "-shared", "-fPIC", "-x", "c", "-", "-o", str(file), *options]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def test_package_links_with_the_driver_that_is_loaded(driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIBRARY_PATH", "/the/users/own")
    text, package = "int opmode_only_here(void);\nint run(void) { return opmode_only_here(); }\n", tmp_path / "package.so"
    defined = ("-lcuda", "-Wl,-z,defs")
    assert compiled(package, text, *defined).returncode != 0
    with linking.driver_can_be_linked():
        assert os.environ["LIBRARY_PATH"].startswith("/the/users/own:")
        done = compiled(package, text, *defined)
        assert done.returncode == 0, done.stderr
    assert os.environ["LIBRARY_PATH"] == "/the/users/own"
    monkeypatch.delenv("LIBRARY_PATH")
    with linking.driver_can_be_linked():
        assert "LIBRARY_PATH" in os.environ
    assert "LIBRARY_PATH" not in os.environ
    assert b"libcuda.so.1" in package.read_bytes(), "the loader asks for the driver's own name"


def wrapper(folder: Path, text: str) -> str:
    """A compiler of one's own, as a user names it in CXX."""
    compiler = folder / "a compiler" / "g++"
    compiler.parent.mkdir()
    compiler.write_text(f"#!/bin/sh\n{text}\n")
    compiler.chmod(0o755)
    return f"'{compiler}'"


def test_compiler_that_links_the_archive_makes_the_mode_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mode = build(node("mode", "aot_inductor"), "mode")
    assert mode.unavailable("cpu") == "", "this machine's own compiler links the shared library"
    monkeypatch.setenv("CXX", wrapper(tmp_path, 'exec g++ -static-libstdc++ "$@"'))
    assert "a compiler/g++' links the archive" in mode.unavailable("cpu")
    monkeypatch.setenv("CXX", "g++")
    assert mode.unavailable("cpu") == ""


@pytest.mark.parametrize("compiler", ["no-such-compiler", "'unbalanced", "printf \\377", "sleep 9", "false"])
def test_compiler_that_cannot_be_asked_is_left_to_torch(compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "ANSWER_S", 0.2)
    monkeypatch.setenv("CXX", compiler)
    assert linking.no_shared_cxx() == ""


def test_nothing_is_changed_without_a_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "MAPS", tmp_path / "no such file")
    before = dict(os.environ)
    with linking.driver_can_be_linked():
        assert dict(os.environ) == before


def test_toolkit_is_the_one_that_torch_builds_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(linking, "DEFAULT_TOOLKIT", tmp_path / "cuda")
    assert linking.toolkit() is None
    (tmp_path / "cuda").mkdir()
    assert linking.toolkit() == tmp_path / "cuda"
    monkeypatch.setattr(shutil, "which", lambda _: "/opt/cuda-13.0/bin/nvcc")
    assert linking.toolkit() == Path("/opt/cuda-13.0")
    monkeypatch.setenv("CUDA_PATH", "/another")
    assert linking.toolkit() == Path("/another")
    monkeypatch.setenv("CUDA_HOME", "/first")
    assert linking.toolkit() == Path("/first")


def test_mode_is_unavailable_on_cuda_without_a_toolkit_and_not_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    mode = build(node("mode", "aot_inductor"), "mode")
    monkeypatch.setattr(linking, "toolkit", lambda: None)
    assert "headers of a CUDA toolkit" in mode.unavailable("cuda")
    assert mode.unavailable("cpu") == ""
    monkeypatch.setattr(linking, "toolkit", lambda: Path("/usr/local/cuda"))
    assert mode.unavailable("cuda") == ""
