"""Completions of a worker that serves eager while it compiles: by hand, and against a simulation in small steps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.analysis import answers, middle_way
from stages.analysis.lifetimes import Service
from stages.core.records.startup import MiddleWay
from tests.analysis.hand_made import example_records

EAGER = Service(ready_s=5.0, goodput_per_s=4.0, capacity_per_s=4.0)
BOTH = Service(ready_s=60.0, goodput_per_s=8.0, capacity_per_s=8.0)
MIDDLE = MiddleWay(supported=True, first_served_s=6.0, switched_s=86.0, switch_gap_s=5.0, eager_alone_ms=10.0, eager_during_ms=20.0)


def test_completions_by_hand() -> None:
    assert middle_way.goodput_meanwhile(EAGER, MIDDLE) == 2.0
    assert [middle_way.completions(at, EAGER, BOTH, MIDDLE) for at in (0.0, 6.0, 16.0, 81.0, 86.0, 96.0)] == [0, 0, 20, 150, 150, 230]


def test_eager_with_capacity_to_spare_is_not_slowed() -> None:
    spare = EAGER._replace(capacity_per_s=10.0)
    assert middle_way.goodput_meanwhile(spare, MIDDLE) == 4.0
    faster = MIDDLE.model_copy(update={"eager_during_ms": 9.0})
    assert middle_way.goodput_meanwhile(EAGER, faster) == 4.0


def simulated(lifetime_s: float, eager: Service, mode: Service, middle: MiddleWay, step_s: float) -> float:
    """Whatever the worker does in each small step."""
    assert middle.first_served_s is not None
    assert middle.switched_s is not None
    assert middle.switch_gap_s is not None
    assert middle.eager_alone_ms
    assert middle.eager_during_ms
    useful = 0.0
    for index in range(round(lifetime_s / step_s)):
        now = (index + 0.5) * step_s
        if now >= middle.switched_s:
            useful += mode.goodput_per_s * step_s
        elif middle.first_served_s <= now < middle.switched_s - middle.switch_gap_s:
            can = eager.capacity_per_s * min(1.0, middle.eager_alone_ms / middle.eager_during_ms)
            useful += min(eager.goodput_per_s, can) * step_s
    return useful


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 40),
    st.integers(1, 80),
    st.integers(0, 8),
    st.integers(1, 40),
    st.integers(0, 40),
    st.integers(5, 40),
    st.integers(0, 200),
)
def test_completions_agree_with_a_simulation(
    first: int, compiling: int, gap: int, goodput: int, spare: int, during: int, quarters: int
) -> None:
    middle = MIDDLE.model_copy(
        update={
            "first_served_s": first / 4,
            "switched_s": (first + compiling) / 4,
            "switch_gap_s": min(gap, compiling) / 4,
            "eager_during_ms": float(during),
        }
    )
    eager = Service(first / 4, goodput / 4, (goodput + spare) / 4)
    found = middle_way.completions(quarters / 4, eager, BOTH, middle)
    assert found == pytest.approx(simulated(quarters / 4, eager, BOTH, middle, 1 / 16), abs=1e-6)


def test_study_holds_the_curve_of_modes_that_were_measured_so() -> None:
    records = example_records()
    warmup = records.warmup["compile_cuda_graph"]
    assert warmup.data
    measured = warmup.model_copy(update={"data": warmup.data.model_copy(update={"middle_way": MIDDLE})})
    changed = records.__class__(**{**vars(records), "warmup": {**records.warmup, "compile_cuda_graph": measured}})
    found = answers.lifetime(changed, "compile_cuda_graph")
    assert found
    assert found.middle_way.keys() == found.completions.keys()
    longest, last = found.middle_way["saturation"][-1]
    assert last > found.completions["saturation"]["cold"][-1][1] - 24.0 * MIDDLE.switched_s  # type: ignore[operator]
    assert longest == 86_400.0
    other = answers.lifetime(changed, "compile")
    assert other
    assert other.middle_way == {}
