"""What is read without torch, and what the caches tell."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stages.instruments import caches, hardware


def no_gpu() -> bool:
    return hardware.first_gpu() is None


@pytest.mark.skipif(not no_gpu(), reason="this machine has a GPU")
def test_machine_without_gpu_has_no_gpu_facts() -> None:
    host = hardware.host()
    assert (host.gpu_uuid, host.gpu_free_bytes, hardware.energy_j()) == (None, None, None)
    assert host.hostname
    assert host.load_average is not None


def test_processor_has_a_name() -> None:
    assert hardware.cpu_name().strip()


def test_hardware_is_read_without_torch() -> None:
    code = "import sys; from stages.instruments import hardware; hardware.host(); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_files_below_a_cache_folder_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "kernel.so").touch()
    (tmp_path / "a" / "graph").touch()
    assert (caches.listing(tmp_path), caches.listing(tmp_path / "nowhere")) == (2, 0)


def test_memory_of_a_cpu_process_is_its_resident_set() -> None:
    from stages.instruments import memory

    assert memory.peak_bytes() > 50_000_000
    assert memory.reserved_bytes() >= memory.peak_bytes() - 1
    assert memory.graph_pool_bytes() == memory.outside_allocator_bytes() == memory.allocated_bytes() == 0
