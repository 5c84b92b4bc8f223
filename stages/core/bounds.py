"""The largest value of each number that decides how long a study takes: past it a typing error would run for years."""

from __future__ import annotations

from stages.core.errors import UserError

MOST = {
    "measure.warmup.cold_starts": 1_000,
    "measure.warmup.warm_starts": 1_000,
    "measure.warmup.artifact_starts": 1_000,
    "measure.capture.max_replayed_steps": 1_000_000,
    "measure.capture.max_launched_steps": 1_000_000,
    "measure.capture.profiled_calls": 1_000,
    "measure.steady_state.num_sets": 100,
    "measure.steady_state.num_rotations": 1_000,
    "measure.steady_state.calls_per_block": 10_000,
    "measure.steady_state.pipelined_calls": 10_000,
    "measure.steady_state.sequence_steps": 1_000_000,
    "measure.steady_state.target_width": 1,
    "measure.load.duration_s": 604_800,
    "measure.load.grace_s": 86_400,
    "measure.load.search_s": 86_400,
    "measure.load.sampled_requests": 10_000,
    "measure.correctness.calls_per_shape": 1_000,
    "measure.correctness.num_examples": 100_000,
    "launch.num_threads": 4_096,
    "launch.request_timeout_s": 10_000_000,
    "model.context_tokens": 10_000_000,
    "model.max_batch": 100_000,
    "model.adapter_rank": 10_000,
    "model.num_layers": 10_000,
    "model.hidden_size": 1_000_000,
    "model.ffn_size": 10_000_000,
    "model.vocab_size": 100_000_000,
}


def check_most(key: str, value: float) -> None:
    """Raise UserError for a value above the largest that its key takes; a key that is not listed takes any."""
    most = MOST.get(key)
    if most is not None and value > most:
        raise UserError(key, f"must be at most {most:,}", value, "Fix the file in conf/ or the override.")
