"""What is read without torch, and what the caches tell."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pynvml
import pytest

from stages.instruments import caches, hardware


def no_gpu() -> bool:
    return hardware.visible_gpu() is None


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


class Machine:
    """NVML of a machine with three GPUs, each its own handle."""

    uuids = ("GPU-8932f937-d72c", "GPU-12345678-aaaa", "GPU-12999999-bbbb")

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
        monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: len(self.uuids))
        monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", self._handle)
        monkeypatch.setattr(pynvml, "nvmlDeviceGetUUID", lambda handle: self.uuids[handle])

    def _handle(self, index: int) -> int:
        if index >= len(self.uuids):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
        return index


@pytest.mark.parametrize(
    ("visible", "index"),
    [(None, 0), ("2", 2), ("1,0", 1), ("GPU-1299", 2), ("GPU-12345678-aaaa,0", 1), ("", None), ("-1", None), ("7", None), ("GPU-77", None)],
)
def test_nvml_asks_the_gpu_that_cuda_shows(monkeypatch: pytest.MonkeyPatch, visible: str | None, index: int | None) -> None:
    Machine(monkeypatch)
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert hardware.nvml_handle() == index


@pytest.mark.gpu
def test_nvml_and_torch_speak_of_one_gpu() -> None:
    import torch

    found = hardware.visible_gpu()
    assert found is not None
    assert str(torch.cuda.get_device_properties(0).uuid) in found.uuid
