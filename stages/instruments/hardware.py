"""The machine, read without torch: NVML for GPUs, /proc for the rest."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from stages.core.records.base import Host


@dataclass(frozen=True)
class GPU:
    """One NVIDIA GPU as NVML describes it; sizes in bytes."""

    name: str
    uuid: str
    memory_bytes: int
    free_bytes: int
    driver: str
    cuda: str


def first_gpu() -> GPU | None:
    """The first GPU, or None where there is no NVML or no device."""
    import pynvml

    try:
        pynvml.nvmlInit()
        if pynvml.nvmlDeviceGetCount() == 0:
            return None
        handle = pynvml.nvmlDeviceGetHandleByIndex(0)
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
    except pynvml.NVMLError:
        return None


def energy_j() -> float | None:
    """NVML's cumulative energy counter of the first GPU in joules, or None where it has none."""
    import pynvml

    try:
        pynvml.nvmlInit()
        return float(pynvml.nvmlDeviceGetTotalEnergyConsumption(pynvml.nvmlDeviceGetHandleByIndex(0))) / 1000
    except pynvml.NVMLError:
        return None


def host() -> Host:
    """This host now: what may differ between two runs in equal environments."""
    gpu = first_gpu()
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


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
