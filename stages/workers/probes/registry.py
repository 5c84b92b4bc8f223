"""All probes, in the order in which they run: the first one measures how well calls repeat, the last ones disturb most."""

from __future__ import annotations

from stages.workers.probes import (
    allocator_churn,
    batch_invariance,
    cache_refilled,
    edge_sizes,
    free_running,
    held_output,
    known_answers,
    new_addresses,
    padding,
    repeated_calls,
    sampling,
    shape_order,
    teacher_forced,
    updated_weights,
)
from stages.workers.probes.probe import Probe

PROBES: tuple[Probe, ...] = (
    repeated_calls.PROBE,
    teacher_forced.PROBE,
    free_running.PROBE,
    shape_order.PROBE,
    edge_sizes.PROBE,
    held_output.PROBE,
    new_addresses.PROBE,
    cache_refilled.PROBE,
    allocator_churn.PROBE,
    padding.PROBE,
    updated_weights.PROBE,
    sampling.PROBE,
    batch_invariance.PROBE,
    known_answers.PROBE,
)
