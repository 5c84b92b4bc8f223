"""The machine's condition at block boundaries, read by the parent while no cell runs: NVML for a GPU, load of the host.

Cumulative clock-event counters catch what happened between two readings; a snapshot of the reasons would only show
that the device is idle now. NVML's process list can be empty in a container, so that other use of the device is its
memory in use less this study's own.
"""

from __future__ import annotations

import os
from typing import Any

from stages.core.records.steps import Conditions
from stages.instruments.hardware import asked, nvml_handle

EVENTS = {
    "power_cap": "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP",
    "thermal": "NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN",
    "hardware_thermal": "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN",
    "power_brake": "NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN",
}


class Watch:
    """Readings of one device (`cpu`, `cuda`) through one set of processes. Make it before any of them is spawned."""

    def __init__(self, device: str) -> None:
        """Remember what others hold on the device now."""
        self._handle = nvml_handle() if device == "cuda" else None
        self._own_bytes = 0
        self._others_at_start = self._used_bytes()
        self._events_us = self._read_events()

    def own(self) -> None:
        """All processes are warm: what the device gained since the start is theirs. From now on they should not grow."""
        used = self._used_bytes()
        if used is not None and self._others_at_start is not None:
            self._own_bytes = used - self._others_at_start

    def read(self, **of_the_worker: Any) -> Conditions:
        """The condition now, with the clock events since the reading before, and what the worker said of its block."""
        before, self._events_us = self._events_us, self._read_events()
        used, others_before = self._used_bytes(), self._others_at_start or 0
        others = None if used is None else max(0, used - self._own_bytes)
        return Conditions(
            sm_clock_mhz=self._number("nvmlDeviceGetClockInfo", "NVML_CLOCK_SM"),
            max_sm_clock_mhz=self._number("nvmlDeviceGetMaxClockInfo", "NVML_CLOCK_SM"),
            power_w=_thousandth(self._number("nvmlDeviceGetPowerUsage")),
            temperature_c=self._number("nvmlDeviceGetTemperature", "NVML_TEMPERATURE_GPU"),
            event_us={name: value - before[name] for name, value in self._events_us.items() if name in before},
            other_bytes=others,
            other_growth_bytes=None if others is None else others - others_before,
            load_average=round(os.getloadavg()[0], 2),
            **of_the_worker,
        )

    def _used_bytes(self) -> int | None:
        memory = self._ask("nvmlDeviceGetMemoryInfo")
        return None if memory is None else int(memory.used)

    def _number(self, function: str, constant: str | None = None) -> int | None:
        found = self._ask(function, constant)
        return None if found is None else int(found)

    def _ask(self, function: str, constant: str | None = None) -> Any:
        """One NVML question about the device; None without a device, or where it does not know."""
        import pynvml

        arguments = [getattr(pynvml, constant)] if constant else []
        return asked(self._handle, lambda handle: getattr(pynvml, function)(handle, *arguments))

    def _read_events(self) -> dict[str, float]:
        """Cumulative us by reason; NVML counts ns. A reason that the driver does not count is absent."""
        import pynvml

        known = {name: getattr(pynvml, constant) for name, constant in EVENTS.items() if hasattr(pynvml, constant)}
        values = asked(self._handle, lambda handle: pynvml.nvmlDeviceGetFieldValues(handle, list(known.values())))
        found = zip(known, values, strict=True) if values is not None else ()
        return {name: value.value.ullVal / 1e3 for name, value in found if value.nvmlReturn == pynvml.NVML_SUCCESS}


def _thousandth(value: int | None) -> float | None:
    return None if value is None else value / 1e3
