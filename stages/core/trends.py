"""Whether a quantity grows along a run: Kendall's test for a trend with the slope of Theil and Sen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

Trend = Literal["grows", "flat", "undecided"]
LEAST_SAMPLES = 8
CRITICAL_Z = 2.326  # one-sided 99 %


def slope(times_s: Sequence[float], values: Sequence[float]) -> float:
    """Median slope over all pairs of samples (Theil 1950, Sen 1968), in units a second; 0 with fewer than two."""
    steps, rises = _pairs(times_s, values)
    return float(np.median(rises / steps)) if len(steps) else 0.0


def trend(times_s: Sequence[float], values: Sequence[float], least_growth: float) -> Trend:
    """`grows` when the trend is significant and at least `least_growth` over the samples' span; `undecided` under 8 samples.

    Kendall's S against its variance without ties, which makes the test more cautious where values repeat.
    """
    count = len(values)
    if count < LEAST_SAMPLES:
        return "undecided"
    _, rises = _pairs(times_s, values)
    z = (float(np.sign(rises).sum()) - 1) / math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    growth = slope(times_s, values) * (times_s[-1] - times_s[0])
    return "grows" if z > CRITICAL_Z and growth >= least_growth else "flat"


def _pairs(times_s: Sequence[float], values: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    first, second = np.triu_indices(len(values), k=1)
    at, found = np.asarray(times_s, dtype=float), np.asarray(values, dtype=float)
    steps = at[second] - at[first]
    return steps[steps > 0], (found[second] - found[first])[steps > 0]
