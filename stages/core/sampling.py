"""Which steps of a trace's sequence are timed when it is too long to be run whole."""

from __future__ import annotations

NUM_WINDOWS = 10


def sampled_indices(total: int, num_steps: int) -> set[int]:
    """Indices of about `num_steps` of `total` steps, in ten windows spread evenly from the first step to the last; all, if there are fewer.

    A window has one step at least.
    """
    if num_steps >= total:
        return set(range(total))
    window = max(1, num_steps // NUM_WINDOWS)
    starts = {round(index * (total - window) / (NUM_WINDOWS - 1)) for index in range(NUM_WINDOWS)}
    return {index for start in starts for index in range(start, start + window)}
