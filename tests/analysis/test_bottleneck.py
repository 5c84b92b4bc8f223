"""Shares of wall time, names and floors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.analysis import bottleneck, floors
from stages.core.records.path import ProfiledStep


def profiled(wall_us: float, busy_us: float, launch: float = 0, python: float = 0, wait: float = 0, compiling: float = 0) -> ProfiledStep:
    return ProfiledStep(
        phase="decode",
        size=1,
        num_calls=5,
        wall_us=wall_us,
        busy_us=busy_us,
        host_launch_us=launch,
        host_python_us=python,
        host_wait_us=wait,
        host_compile_us=compiling,
        kernels_per_call=1,
        graph_launches_per_call=0,
        graph_kernels_per_call=0,
        individual_kernels_per_call=1,
        unattributed_kernels_per_call=0,
        attention_kernels=[],
        top_kernels=[],
    )


def test_idle_is_unprofiled_wall_less_busy_and_split_by_profiled_host_time() -> None:
    found = bottleneck.bottleneck(profiled(2000, 200, launch=900, python=540, wait=180), 1000.0, bottleneck.GPU)
    assert found.name == "launch_bound"
    assert found.dilation == 2.0
    assert found.shares == pytest.approx({"busy": 0.2, "launch": 0.4, "python": 0.24, "wait": 0.08, "compile": 0.0, "other": 0.08})
    assert "1,000 µs the device was busy for 20%" in found.sentence


def test_sixty_percent_busy_is_device_bound() -> None:
    assert bottleneck.bottleneck(profiled(1000, 600, launch=400), 1000.0, bottleneck.GPU).name == "device_bound"
    assert bottleneck.bottleneck(profiled(1000, 590, launch=410), 1000.0, bottleneck.GPU).name == "launch_bound"


def test_each_idle_share_can_give_the_name() -> None:
    for key, name in (("launch", "launch_bound"), ("python", "python_bound"), ("wait", "wait_bound"), ("compiling", "compile_bound")):
        assert bottleneck.bottleneck(profiled(1000, 100, **{key: 800}), 1000.0, bottleneck.GPU).name == name
    assert bottleneck.bottleneck(profiled(1000, 100), 1000.0, bottleneck.GPU).name == "other"


def test_a_cpu_has_operators_and_counts_waiting_as_other() -> None:
    found = bottleneck.bottleneck(profiled(1000, 500, python=200, wait=300), 1000.0, bottleneck.CPU)
    assert found.shares == pytest.approx({"operators": 0.5, "compile": 0.0, "python": 0.2, "other": 0.3})
    assert bottleneck.bottleneck(profiled(1000, 900), 1000.0, bottleneck.CPU).name == "operator_bound"


def test_a_profile_without_host_times_leaves_idle_unexplained() -> None:
    assert bottleneck.bottleneck(profiled(500, 500), 1000.0, bottleneck.GPU).shares["other"] == pytest.approx(0.5)


@given(st.lists(st.floats(0, 1e6), min_size=6, max_size=6), st.floats(1e-3, 1e6))
def test_shares_sum_to_one(values: list[float], wall_us: float) -> None:
    for words in (bottleneck.GPU, bottleneck.CPU):
        shares = bottleneck.bottleneck(profiled(*values), wall_us, words).shares
        assert sum(shares.values()) == pytest.approx(1)
        assert all(share >= 0 for share in shares.values())


CEILINGS = floors.Ceilings(bandwidth_bytes_per_s=4e12, operations_per_s=8e14, l2_bytes=50e6)


def test_floor_is_the_larger_of_memory_and_arithmetic_time() -> None:
    assert floors.floor(floors.Work(2e9, 1e9), CEILINGS, 1000.0).floor_us == 500.0
    found = floors.floor(floors.Work(2e9, 1.6e12), CEILINGS, 4000.0)
    assert (found.floor_us, found.ratio) == (2000.0, 2.0)


def test_floor_is_not_applicable_when_the_cache_serves_the_reads() -> None:
    found = floors.floor(floors.Work(99e6, 1e9), CEILINGS, 1000.0)
    assert found.floor_us is None
    assert found.reason.startswith("not applicable: the step reads 99.0 MB, under twice the L2")
    assert floors.floor(floors.Work(101e6, 1e9), CEILINGS, 1000.0).floor_us == pytest.approx(25.25)


def test_floor_without_ceilings_or_work_says_why() -> None:
    assert floors.floor(floors.Work(1e9, 1e9), None, 1.0).reason == "not applicable: no bandwidth and rate were measured on this device"
    assert floors.floor(None, CEILINGS, 1.0).reason == "not applicable: the model states no bytes for this shape"


def test_a_step_without_idle_time_names_no_idle_share() -> None:
    assert bottleneck.bottleneck(profiled(1000, 1000), 1000.0, bottleneck.CPU).sentence.endswith("operators ran for 100%")
