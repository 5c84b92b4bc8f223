"""Estimates over sets of processes, percentiles with the sample counts they need, and the classes of a comparison.

The unit of repetition is a fresh set of processes: samples inside one process share its offset and are not independent.
Intervals are Student-t on set means (df = sets - 1), two-sided 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from stages.core.records.answer import Class, Estimate, Timing
from stages.core.service_levels import MIN_SAMPLES_P90 as MIN_SAMPLES_P90
from stages.core.service_levels import MIN_SAMPLES_P99 as MIN_SAMPLES_P99
from stages.core.service_levels import percentiles as percentiles
from stages.core.service_levels import tails

CONFIDENCE = 0.95
LEAST_MARGIN = 0.01
ONE_SET_MARGIN = 0.05
ECDF_POINTS = 200


def estimate(values_by_set: Sequence[float], confidence: float = CONFIDENCE) -> Estimate:
    """Mean of set means with its Student-t interval, in the unit given; `low` and `high` are None with one set."""
    assert values_by_set, "an estimate needs at least one set"
    mean = float(np.mean(values_by_set))
    num_sets = len(values_by_set)
    if num_sets == 1:
        return Estimate(value=mean, low=None, high=None, num_sets=1)
    half = float(stats.t.ppf((1 + confidence) / 2, num_sets - 1)) * float(np.std(values_by_set, ddof=1)) / math.sqrt(num_sets)
    return Estimate(value=mean, low=mean - half, high=mean + half, num_sets=num_sets)


def welch(first: Sequence[float], second: Sequence[float], known_variance: float = 0.0) -> tuple[float, float, float]:
    """Difference of the means, second - first, with its interval at 95 % (B. L. Welch, 1947); both samples need two values.

    `known_variance` of the difference comes on top of what the samples say, and is known no better than both together.
    """
    difference = float(np.mean(second) - np.mean(first))
    parts = [(float(np.var(values, ddof=1)) / len(values), len(values) - 1) for values in (first, second)]
    most_freedom = len(first) + len(second) - 2
    parts.append((known_variance, most_freedom))
    squared = sum(part for part, _ in parts)
    if squared == 0:
        return difference, difference, difference
    freedom = min(squared**2 / sum(part**2 / own for part, own in parts), most_freedom)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom)) * math.sqrt(squared)
    return difference, difference - half, difference + half


def exponentiated(log_ratio: Estimate) -> Estimate:
    """A ratio with its interval, from the estimate of its logarithm."""
    low = None if log_ratio.low is None else math.exp(log_ratio.low)
    high = None if log_ratio.high is None else math.exp(log_ratio.high)
    return Estimate(value=math.exp(log_ratio.value), low=low, high=high, num_sets=log_ratio.num_sets)


def spread(twin_log_ratios_by_set: Sequence[float]) -> float:
    """Root mean square of the A/A log-ratios of one twin pair, a value a set: how far apart equal things came out."""
    return math.sqrt(float(np.mean(np.square(twin_log_ratios_by_set)))) if twin_log_ratios_by_set else 0.0


def margin(spreads: Sequence[float]) -> float:
    """The difference (as a log-ratio) below which two modes count as equal: 1 %, or the largest A/A spread if that is more."""
    return max([math.log1p(LEAST_MARGIN), *spreads])


def classify(log_ratio: Estimate, margin: float) -> Class:
    """`faster`, `slower`, `same` or `undecided` from log(baseline / mode).

    With an interval: outside the margin, inside it, or neither. With one set there is no interval: differences
    under 5 % (or the margin, if larger) stay undecided.
    """
    if log_ratio.low is None or log_ratio.high is None:
        limit = max(math.log1p(ONE_SET_MARGIN), margin)
        return "undecided" if abs(log_ratio.value) < limit else _direction(log_ratio.value)
    if log_ratio.low > margin or log_ratio.high < -margin:
        return _direction(log_ratio.value)
    return "same" if -margin <= log_ratio.low and log_ratio.high <= margin else "undecided"


def _direction(log_ratio: float) -> Class:
    return "faster" if log_ratio > 0 else "slower"


def timing(samples_us: Sequence[float]) -> Timing:
    """Median, tails and ECDF of pooled step times in us; nothing is dropped, a tail without enough samples is None."""
    assert samples_us, "a timing needs at least one sample"
    p90, p99 = tails(samples_us)
    return Timing(median=float(np.median(samples_us)), p90=p90, p99=p99, n=len(samples_us), ecdf=ecdf(samples_us))


def ecdf(samples: Sequence[float]) -> list[float]:
    """At most 200 values v[0] <= ... <= v[k-1]: v[i] is the quantile i / (k - 1), so the first is the least, the last the most."""
    if len(samples) <= ECDF_POINTS:
        return sorted(float(value) for value in samples)
    return [float(value) for value in np.quantile(samples, np.linspace(0.0, 1.0, ECDF_POINTS))]


def wilson(successes: float, trials: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Wilson score interval of a share (E. B. Wilson, 1927); (0, 1) without trials."""
    if trials <= 0:
        return 0.0, 1.0
    z = float(stats.norm.ppf((1 + confidence) / 2))
    share = successes / trials
    centre = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials)) / (1 + z * z / trials)
    return max(0.0, centre - half), min(1.0, centre + half)
