"""Growth along a run: found when it is there, and not where memory only jitters."""

from __future__ import annotations

import numpy as np
import pytest

from stages.core.trends import slope, trend

TIMES = [float(at) for at in range(60)]


def test_slope_is_that_of_the_line_even_with_an_outlier() -> None:
    values = [3.0 * at + 7 for at in TIMES]
    values[10] = 1e6
    assert slope(TIMES, values) == pytest.approx(3.0, rel=0.01)
    assert slope([1.0], [5.0]) == 0.0


def test_steady_growth_grows_and_a_constant_or_a_fall_is_flat() -> None:
    assert trend(TIMES, [100.0 + at for at in TIMES], least_growth=20) == "grows"
    assert trend(TIMES, [100.0] * 60, least_growth=20) == "flat"
    assert trend(TIMES, [100.0 - at for at in TIMES], least_growth=0) == "flat"


def test_growth_below_the_least_is_flat_and_few_samples_are_undecided() -> None:
    assert trend(TIMES, [100.0 + 0.01 * at for at in TIMES], least_growth=20) == "flat"
    assert trend(TIMES[:7], TIMES[:7], least_growth=1) == "undecided"


def test_noise_alone_is_said_to_grow_in_at_most_one_run_in_fifty() -> None:
    rng = np.random.default_rng(0)
    found = [trend(TIMES, rng.normal(0, 1, 60).tolist(), least_growth=0) for _ in range(400)]
    assert found.count("grows") <= 8
