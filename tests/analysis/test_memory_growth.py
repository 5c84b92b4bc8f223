"""A leak is told from noise, from warming up, and from one late step up."""

from __future__ import annotations

import random

import pytest

from stages.analysis.memory_growth import memory_growth
from stages.core.records.path import MemorySample

MIB = 1 << 20


def samples(reserved_mib: list[float]) -> list[MemorySample]:
    return [
        MemorySample(step=40 * index, allocated_bytes=0, reserved_bytes=int(value * MIB), graph_pool_bytes=0, outside_allocator_bytes=0)
        for index, value in enumerate(reserved_mib)
    ]


def verdict(reserved_mib: list[float]) -> str:
    return str(memory_growth(samples(reserved_mib))["reserved_bytes"]["verdict"])


def test_leak_is_found_under_noise_with_its_slope() -> None:
    noise = random.Random(0)
    values = [1000 + 2 * index + noise.uniform(-3, 3) for index in range(50)]
    found = memory_growth(samples(values))["reserved_bytes"]
    assert found["verdict"] == "grows"
    assert found["bytes_per_1000_steps"] == pytest.approx(2 * MIB / 40 * 1000, rel=0.1)


def test_noise_alone_grows_in_at_most_three_of_a_hundred() -> None:
    noise = random.Random(1)
    found = [verdict([1000 + noise.uniform(-30, 30) for _ in range(50)]) for _ in range(100)]
    assert found.count("grows") <= 3


def test_constant_is_steady() -> None:
    assert verdict([1000.0] * 50) == "steady"


def test_growth_that_ends_in_the_first_half_is_warming_up() -> None:
    assert verdict([min(1000 + 50 * index, 2000) for index in range(50)]) == "steady"


def test_trend_too_small_to_matter_is_steady() -> None:
    assert verdict([1000 + 0.01 * index for index in range(50)]) == "steady"


def test_shrinking_is_not_growing() -> None:
    assert verdict([2000 - 10.0 * index for index in range(50)]) == "steady"


def test_few_samples_have_no_verdict() -> None:
    assert memory_growth(samples([1.0] * 15)) == {}
