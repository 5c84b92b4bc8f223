"""Conditions at block boundaries: what a device says, what it does not know, and what others hold."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from stages.instruments import contention
from stages.instruments.conditions import Watch
from stages.instruments.contention import Stretch


class Device:
    """A GPU that answers what these tests ask of NVML."""

    def __init__(self) -> None:
        self.used = 1 << 30
        self.events_ns = {"thermal": 1000, "power_cap": 5000}

    def answers(self) -> dict[str, Any]:
        return {
            "nvmlInit": lambda: None,
            "nvmlDeviceGetHandleByIndex": lambda index: index,
            "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(used=self.used),
            "nvmlDeviceGetClockInfo": lambda *_: 1200,
            "nvmlDeviceGetMaxClockInfo": lambda *_: 1980,
            "nvmlDeviceGetPowerUsage": lambda _: 350_500,
            "nvmlDeviceGetTemperature": self._unknown,
            "nvmlDeviceGetFieldValues": self._events,
        }

    def _unknown(self, *_: Any) -> Any:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    def _events(self, _: Any, fields: list[int]) -> list[Any]:
        known = {
            pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN: "thermal",
            pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP: "power_cap",
        }
        return [self._value(known.get(field)) for field in fields]

    def _value(self, name: str | None) -> Any:
        status = pynvml.NVML_SUCCESS if name else pynvml.NVML_ERROR_NOT_SUPPORTED
        return SimpleNamespace(nvmlReturn=status, value=SimpleNamespace(ullVal=self.events_ns.get(name or "", 0)))


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    found = Device()
    for name, answer in found.answers().items():
        monkeypatch.setattr(pynvml, name, answer)
    return found


def test_events_are_those_since_the_reading_before_and_unknown_ones_are_absent(device: Device) -> None:
    watch = Watch("cuda")
    device.events_ns["thermal"] += 7000
    found = watch.read()
    assert (found.sm_clock_mhz, found.max_sm_clock_mhz, found.power_w, found.temperature_c) == (1200, 1980, 350.5, None)
    assert found.event_us == {"thermal": 7.0, "power_cap": 0.0}
    assert watch.read().event_us["thermal"] == 0.0


def test_memory_of_this_study_is_not_other_use_and_growth_of_others_is_told_apart(device: Device) -> None:
    watch = Watch("cuda")
    device.used += 20 << 30
    watch.own()
    assert (watch.read().other_bytes, watch.read().other_growth_bytes) == (1 << 30, 0)
    device.used += 2 << 30
    assert (watch.read().other_bytes, watch.read().other_growth_bytes) == (3 << 30, 2 << 30)


def test_a_cpu_has_host_load_and_nothing_of_a_device() -> None:
    watch = Watch("cpu")
    watch.own()
    found = watch.read(cpu_share=0.9, queue_share=None)
    assert found.load_average is not None
    assert (found.cpu_share, found.sm_clock_mhz, found.other_bytes, found.event_us) == (0.9, None, None, {})


def test_shares_come_from_processor_time_and_the_schedulers_queue(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    file = tmp_path / "schedstat"
    monkeypatch.setattr(contention, "SCHEDULER_FILE", file)
    clock = {"wall": 10.0, "cpu": 1.0}
    monkeypatch.setattr(contention.time, "perf_counter", lambda: clock["wall"])
    monkeypatch.setattr(contention.time, "process_time", lambda: clock["cpu"])
    stretch = Stretch()
    for began_s in (10.0, 20.0):  # what is between two stretches counts in neither
        clock.update(wall=began_s, cpu=began_s / 10)
        file.write_text(f"5000000000 {began_s * 1e8:.0f} 7\n")
        with stretch:
            clock.update(wall=began_s + 2.0, cpu=began_s / 10 + 1.5)
            file.write_text(f"6500000000 {began_s * 1e8 + 5e8:.0f} 9\n")
    assert stretch.shares() == {"cpu_share": 0.75, "queue_share": 0.25}


@pytest.mark.parametrize("text", ["0 0 1\n", "", "a b c\n"])
def test_kernel_that_does_not_count_waiting_gives_no_share(text: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    file = tmp_path / "schedstat"
    file.write_text(text)
    monkeypatch.setattr(contention, "SCHEDULER_FILE", file)
    with Stretch() as stretch:
        pass
    assert stretch.shares()["queue_share"] is None
