"""Shares, padding and advice of a small walk that can be counted by hand."""

from __future__ import annotations

from typing import Any

import pytest

from stages.analysis import coverage
from stages.core.records.path import GraphBytes, PathProof, ShapeCoverage
from stages.core.records.plan import Plan, StepRun


def plan(runs: list[tuple[int, int]], capture_sizes: list[int]) -> Plan:
    """Decode runs of (batch, steps)."""
    return Plan.model_construct(
        capture_sizes=capture_sizes,
        prompt_sizes=[64],
        runs=[StepRun(phase="decode", size=size, padded_size=size, count=count) for size, count in runs],
    )


def shape(phase: Any, padded_size: int, **paths: tuple[int, int, float]) -> ShapeCoverage:
    shares = {path: {"num_steps": steps, "num_tokens": tokens, "wall_s": wall_s} for path, (steps, tokens, wall_s) in paths.items()}
    return ShapeCoverage.model_validate(
        {"phase": phase, "padded_size": padded_size, "paths": shares, "compiled_calls": {}, "num_replays": 0}
    )


def proof(*shapes: ShapeCoverage, transform: str = "inductor", replay: str = "none") -> PathProof:
    return PathProof.model_construct(shapes=list(shapes), claim={"transform": transform, "replay": replay})


WALK = proof(shape("decode", 8, replayed=(6, 30, 0.6), recorded=(2, 10, 1.4)), shape("decode", 1, replayed=(2, 2, 0.5)))


def test_shares_are_of_steps_tokens_and_time() -> None:
    shares = coverage.coverage(WALK, plan([], [1, 4, 8]))["shares"]
    assert shares["num_steps"] == {"replayed": pytest.approx(0.8), "recorded": pytest.approx(0.2)}
    assert shares["num_tokens"]["recorded"] == pytest.approx(10 / 42)
    assert shares["wall_s"]["recorded"] == pytest.approx(1.4 / 2.5)


def test_baseline_path_is_what_the_mode_gave_up() -> None:
    steps = shape("decode", 8, compiled=(6, 30, 0.6), fallback=(1, 5, 0.3)), shape("prefill", 64, eager=(1, 7, 0.1))
    shares = coverage.coverage(proof(*steps, transform="aot"), plan([], [8]))["baseline_share"]
    assert shares == {"num_steps": pytest.approx(2 / 8), "num_tokens": pytest.approx(12 / 42), "wall_s": pytest.approx(0.4)}
    assert coverage.coverage(WALK, plan([], [1, 8]))["baseline_share"] == {"num_steps": 0, "num_tokens": 0, "wall_s": 0}
    assert coverage.coverage(proof(*steps, transform="none"), plan([], [8]))["baseline_share"] is None
    assert coverage.coverage(proof(*steps, transform="none", replay="manual"), plan([], [8]))["baseline_share"] is not None


def test_padding_is_what_no_sequence_used() -> None:
    assert coverage.coverage(WALK, plan([], [1, 8]))["padding_waste"] == {"decode": pytest.approx(1 - 42 / (8 * 8 + 2 * 1))}


def test_planned_sizes_that_no_step_used_are_named() -> None:
    assert coverage.coverage(WALK, plan([], [1, 4, 8]))["unused_sizes"] == {"prefill": [64], "decode": [4]}


def test_walk_of_an_older_record_has_no_shares() -> None:
    assert coverage.coverage(proof(), plan([], [1])) == {}


def test_advice_drops_the_size_that_saves_less_than_one_hundredth() -> None:
    found = coverage.advice(plan([(1, 900), (3, 1), (8, 99)], [1, 4, 8]), {1: 10.0, 4: 12.0, 8: 20.0}, None)
    assert found is not None
    assert (found["capture_sizes"], found["dropped_sizes"], found["startup_s_saved"]) == ([1, 8], [4], None)
    assert found["decode_s"] == pytest.approx((900 * 10 + 100 * 20) / 1e6)
    assert found["planned_decode_s"] == pytest.approx((900 * 10 + 12 + 99 * 20) / 1e6)


def test_advice_says_what_the_graphs_left_out_had_added_to_memory() -> None:
    graphs = [GraphBytes(shape=shape, pool_bytes=pool, outside_allocator_bytes=3) for shape, pool in (("decode/8", 90), ("decode/4", 10))]
    found = coverage.advice(plan([(1, 900), (8, 99)], [1, 4, 8]), {1: 10.0, 4: 12.0, 8: 20.0}, None, graphs)
    assert found is not None
    assert (found["dropped_sizes"], found["bytes_saved"]) == ([4], 13)
    without = coverage.advice(plan([(1, 900), (8, 99)], [1, 4, 8]), {1: 10.0, 4: 12.0, 8: 20.0}, None)
    assert without is not None
    assert without["bytes_saved"] is None


def test_steps_that_no_planned_size_holds_are_counted() -> None:
    found = coverage.coverage(WALK, plan([(9, 5), (8, 1)], [1, 8]))
    assert found["past_the_largest"] == {"prefill": 0, "decode": 5}


def test_no_advice_without_the_time_of_a_size_that_holds_every_batch() -> None:
    assert coverage.advice(plan([(8, 1)], [8]), {4: 1.0}, None) is None
