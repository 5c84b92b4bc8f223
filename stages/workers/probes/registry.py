"""All probes, in the order in which they run: the first one measures how well calls repeat, the last ones disturb most."""

from __future__ import annotations

from stages.workers.probes import (
    adapter_switch,
    allocator_churn,
    batch_invariance,
    cache_refilled,
    custom_ops,
    data_branch,
    edge_sizes,
    free_running,
    held_output,
    host_work,
    known_answers,
    module_attribute,
    mutated_inputs,
    new_addresses,
    other_thread,
    padding,
    repeated_calls,
    sampling,
    shape_order,
    teacher_forced,
    unplanned_size,
    updated_weights,
    written_output,
)
from stages.workers.probes.probe import Probe

PROBES: tuple[Probe, ...] = (
    repeated_calls.PROBE,
    teacher_forced.PROBE,
    free_running.PROBE,
    shape_order.PROBE,
    edge_sizes.PROBE,
    unplanned_size.PROBE,
    held_output.PROBE,
    written_output.PROBE,
    new_addresses.PROBE,
    mutated_inputs.PROBE,
    cache_refilled.PROBE,
    allocator_churn.PROBE,
    padding.PROBE,
    updated_weights.PROBE,
    adapter_switch.PROBE,
    custom_ops.PROBE,
    sampling.PROBE,
    batch_invariance.PROBE,
    known_answers.PROBE,
    module_attribute.PROBE,
    host_work.PROBE,
    other_thread.PROBE,
    data_branch.PROBE,  # last: a capture that it breaks may leave torch's allocator counting one under way
)
