"""Kernel times of two modes by name: what differs most comes first, and the rows add up."""

from __future__ import annotations

from typing import Any

import pytest

from stages.analysis.kernel_times import OTHERS, kernel_differences


def profile(total: float | None, **times: float) -> dict[str, Any]:
    kernels = [{"name": name, "total_us": us, "count": 1.0} for name, us in times.items()]
    return {"top_kernels": kernels, "kernels_us": total}


EAGER, COMPILED = profile(1100.0, gemm=700.0, norm=200.0, rope=150.0), profile(900.0, gemm=690.0, fused=120.0)


def test_names_that_differ_most_come_first_with_what_each_mode_spends() -> None:
    found = kernel_differences(EAGER, COMPILED, 3)
    assert [(one.name, one.first_us, one.second_us, one.saved_us) for one in found[:3]] == [
        ("norm", 200.0, 0.0, 200.0),
        ("rope", 150.0, 0.0, 150.0),
        ("fused", 0.0, 120.0, -120.0),
    ]


@pytest.mark.parametrize("most", [1, 3, 50])
def test_rows_add_up_to_the_difference_of_all_kernels(most: int) -> None:
    found = kernel_differences(EAGER, COMPILED, most)
    assert found[-1].name == OTHERS
    assert sum(one.saved_us for one in found) == pytest.approx(200.0)


def test_without_the_sums_nothing_is_said_of_the_others() -> None:
    assert OTHERS not in {one.name for one in kernel_differences(profile(None, gemm=1.0), COMPILED, 5)}


def test_mode_against_itself_differs_in_nothing() -> None:
    assert all(one.saved_us == 0 for one in kernel_differences(EAGER, EAGER, 5))
