"""Every planted fault of the answers, in the order of the table in docs/methodology.md: in words, and who must catch it."""

from __future__ import annotations

from typing import NamedTuple

import pytest


class Listed(NamedTuple):
    """In words; the probe's name; the check of it whose value the table gives."""

    words: str
    probe: str
    check: str


PLANTED = {
    "stale_token": Listed("stale input token", "teacher_forced", "teacher_forced_logits"),
    "frozen_position": Listed("frozen position", "teacher_forced", "teacher_forced_logits"),
    "position_off_by_one": Listed("position off by one", "teacher_forced", "teacher_forced_logits"),
    "zeroed_cache_slot": Listed("zeroed cache slot", "teacher_forced", "teacher_forced_logits"),
    "lost_cache_write": Listed("lost cache write", "teacher_forced", "teacher_forced_logits"),
    "output_overwritten": Listed("output overwritten by the next call", "held_output", "held_output"),
    "padding_leak": Listed("padding leaks into real rows", "padding", "padding"),
    "weights_swapped": Listed("weights swapped after the capture", "updated_weights", "weights_copied"),
    "weights_by_pointer": Listed("weights swapped by pointer, old addresses read", "updated_weights", "weights_by_pointer"),
    "stale_adapter": Listed("stale adapter", "adapter_switch", "adapter_switch"),
    "attribute_frozen": Listed("module attribute kept from the capture", "module_attribute", "attribute_followed"),
    "captured_branch": Listed("captured wrong branch", "data_branch", "branch_taken"),
    "package_of_planned_sizes": Listed("package fed another batch size", "unplanned_size", "unplanned_size"),
    "generator_not_registered": Listed("generator not registered", "sampling", "sampling_varies"),
    "generator_of_its_own": Listed("a generator that no seed resets", "sampling", "sampling_repeats_with_seed"),
    "tokens_cut_short": Listed("last row computed as the first", "free_running", "free_running_tokens"),
    "uneven_calls": Listed("every third call is 1 % off", "repeated_calls", "repeated_calls"),
    "captured_inputs": Listed("inputs of the capture read for ever", "new_addresses", "new_input_addresses"),
    "cache_of_its_own": Listed("a cache of its own", "cache_refilled", "cache_cleared"),
    "shared_pool": Listed("first step after another size is 1e-6 off", "shape_order", "shape_order"),
    "mutates_twice": Listed("inputs written twice", "mutated_inputs", "mutated_inputs"),
    "output_read_back": Listed("a step reads the output buffer of the step before", "written_output", "written_output"),
    "host_work_elided": Listed("Python of the step left out", "host_work", "host_work_done"),
    "bound_to_its_thread": Listed("state bound to the first thread", "other_thread", "other_thread"),
}
"""Modes of `planted.py`, by the name of the function there."""

HIDES_MUTATION = Listed("custom operator that hides a mutation", "custom_ops", "undeclared_writes")
FREED_POINTER = Listed("freed captured pointer", "allocator_churn", "allocator_churn")
HOST_BRANCH = Listed("branch chosen by the host before the capture", "teacher_forced", "teacher_forced_logits")
WRONG_WHEN_BUSY = "wrong tokens in batches under load"
FAULTS = (*(one.words for one in (*PLANTED.values(), HIDES_MUTATION, FREED_POINTER, HOST_BRANCH)), WRONG_WHEN_BUSY)

IN_THE_SHORT_SUITE = {"output_overwritten", "weights_swapped"}


def through_the_command() -> list[object]:
    """A process each costs seconds: the command is run for all of them in the long suite, for some in the short one."""
    return [_case(name, () if name in IN_THE_SHORT_SUITE else (pytest.mark.slow,)) for name in PLANTED]


def in_this_process() -> list[object]:
    """All of them."""
    return [_case(name, ()) for name in PLANTED]


def _case(name: str, marks: tuple[pytest.MarkDecorator, ...]) -> object:
    return pytest.param(name, PLANTED[name].probe, id=name, marks=(pytest.mark.fault(PLANTED[name].words), *marks))
