"""The machine, read without torch: NVML for GPUs, /proc for the rest."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from stages.core.records.base import Host

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class GPU:
    """One NVIDIA GPU as NVML describes it; sizes in bytes."""

    name: str
    uuid: str
    memory_bytes: int
    free_bytes: int
    driver: str
    cuda: str


def nvml_handle() -> Any:
    """NVML's handle of the GPU that a worker calls `cuda:0`, or None where there is no NVML or no such device.

    NVML does not heed CUDA_VISIBLE_DEVICES: its first entry is looked up here, an index in the order of the PCI bus
    (workers run with CUDA_DEVICE_ORDER=PCI_BUS_ID) or a UUID, which may be shortened.
    """
    import pynvml

    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    try:
        pynvml.nvmlInit()
        if first.isdigit():
            return pynvml.nvmlDeviceGetHandleByIndex(int(first))
        if first.startswith("MIG-"):
            return pynvml.nvmlDeviceGetHandleByUUID(first)
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return next((handle for handle in handles if first and _text(pynvml.nvmlDeviceGetUUID(handle)).startswith(first)), None)
    except pynvml.NVMLError:
        return None


def asked(handle: Any, question: Callable[[Any], Answer]) -> Answer | None:
    """What a question about a device gives; None without one (no handle), or where NVML does not know."""
    import pynvml

    if handle is None:
        return None
    try:
        return question(handle)
    except pynvml.NVMLError:
        return None


def visible_gpu() -> GPU | None:
    """The GPU that workers use, or None where they see none."""
    return asked(nvml_handle(), _described)


def energy_j() -> float | None:
    """NVML's cumulative energy counter of the GPU in joules, or None where it has none."""
    import pynvml

    return asked(nvml_handle(), lambda handle: float(pynvml.nvmlDeviceGetTotalEnergyConsumption(handle)) / 1000)


def host() -> Host:
    """This host now: what may differ between two runs in equal environments."""
    gpu = visible_gpu()
    return Host(
        hostname=socket.gethostname(),
        gpu_uuid=gpu.uuid if gpu else None,
        gpu_free_bytes=gpu.free_bytes if gpu else None,
        load_average=round(os.getloadavg()[0], 2),
    )


def cpu_name() -> str:
    """The processor's model name from /proc/cpuinfo, or `unknown`."""
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def _described(handle: Any) -> GPU:
    import pynvml

    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    version = pynvml.nvmlSystemGetCudaDriverVersion()
    return GPU(
        name=_text(pynvml.nvmlDeviceGetName(handle)),
        uuid=_text(pynvml.nvmlDeviceGetUUID(handle)),
        memory_bytes=int(memory.total),
        free_bytes=int(memory.free),
        driver=_text(pynvml.nvmlSystemGetDriverVersion()),
        cuda=f"{version // 1000}.{version % 1000 // 10}",
    )


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
