"""When requests arrive: as recorded, or by a seeded renewal process with the trace's lengths in their order.

The same seed gives the same arrivals to every mode. At another rate they are the same pattern, compressed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, islice
from typing import Any

import numpy as np

RECORDED, POISSON, GAMMA = "recorded", "poisson", "gamma"


def arriving(
    requests: Sequence[dict[str, Any]], process: str, rate_per_s: float, until_s: float, seed: int, gamma_shape: float
) -> list[dict[str, Any]]:
    """Request documents with arrivals at `rate_per_s` on average up to `until_s`.

    `recorded` gives them back as they are. `poisson`: exponential gaps. `gamma`: gamma gaps of this shape, whose
    coefficient of variation is 1 / sqrt(shape). Lengths start again when the trace ends.
    """
    if process == RECORDED:
        return list(requests)
    shape = {POISSON: 1.0, GAMMA: gamma_shape}[process]
    arrivals_s = _renewal(shape, rate_per_s, until_s, np.random.default_rng(seed))
    found = islice(cycle(requests), len(arrivals_s))
    return [one | {"request_id": index, "arrival_s": at} for index, (one, at) in enumerate(zip(found, arrivals_s, strict=True))]


def recorded_pace(
    requests: Sequence[dict[str, Any]], recorded_rate_per_s: float, rate_per_s: float, longest_s: float
) -> tuple[float, float]:
    """(factor, window in s): divided by the factor, the first `rate_per_s` x window recorded arrivals fill the window.

    By the rate of the whole trace, its first seconds would be sent at another rate than the one asked for: the Azure
    conversation trace begins at half of its mean. A trace with fewer requests than that is sent whole and ends the window.
    """
    number = max(1, round(rate_per_s * longest_s))
    if number < len(requests):
        end_s = (requests[number - 1]["arrival_s"] + requests[number]["arrival_s"]) / 2
        if end_s > 0:
            return end_s / longest_s, longest_s
    return rate_per_s / recorded_rate_per_s, min(longest_s, len(requests) / rate_per_s)


def _renewal(shape: float, rate_per_s: float, until_s: float, rng: np.random.Generator) -> list[float]:
    """Arrival times in s; gaps are gamma with mean 1 / rate, the first one from 0."""
    arrivals_s: list[float] = []
    at_s = float(rng.gamma(shape) / shape / rate_per_s)
    while at_s <= until_s:
        arrivals_s.append(at_s)
        at_s += float(rng.gamma(shape) / shape / rate_per_s)
    return arrivals_s
