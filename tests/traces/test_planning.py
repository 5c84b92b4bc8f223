from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stages.core.errors import UserError
from stages.core.records.plan import Request
from stages.traces.chat import Chat
from stages.traces.planning import PlanSettings, padded, plan


@dataclass
class FixedTrace:
    lengths: list[tuple[int, int]]
    gap_s: float = 0.01
    name: str = "fixed"

    def files(self) -> list[Path]:
        return []

    def requests(self) -> list[Request]:
        return [Request(request_id=i, arrival_s=i * self.gap_s, prompt_tokens=p, output_tokens=o) for i, (p, o) in enumerate(self.lengths)]


@dataclass
class SmallModel:
    context_tokens: int = 256
    max_batch: int = 8
    capture_sizes: list[int] = field(default_factory=lambda: [1, 2, 4, 8])
    prompt_sizes: list[int] = field(default_factory=lambda: [64, 256])


def test_lengths_that_fit_are_never_scaled_up() -> None:
    result, requests = plan(FixedTrace([(10, 3), (20, 4)]), SmallModel(), PlanSettings())
    assert result.length_factor == 1
    assert [(r.prompt_tokens, r.output_tokens) for r in requests] == [(10, 3), (20, 4)]


def test_lengths_are_scaled_by_the_longest_request_and_rounded_up() -> None:
    result, requests = plan(FixedTrace([(1000, 24), (101, 1)]), SmallModel(), PlanSettings())
    assert result.length_factor == 0.25
    assert [(r.prompt_tokens, r.output_tokens) for r in requests] == [(250, 6), (26, 1)]


@given(st.lists(st.tuples(st.integers(1, 10**8), st.integers(1, 10**6)), min_size=2, max_size=6), st.integers(2, 300))
def test_scaled_requests_always_fit_the_context(lengths: list[tuple[int, int]], context: int) -> None:
    model = SmallModel(context_tokens=context, prompt_sizes=[max(1, context // 2)])
    for request in plan(FixedTrace(lengths), model, PlanSettings())[1]:
        assert 1 <= request.prompt_tokens <= model.prompt_sizes[-1]
        assert request.output_tokens >= 1
        assert request.prompt_tokens + request.output_tokens <= context


def test_planned_shapes_are_those_that_steps_use_and_the_largest_batch() -> None:
    result, _ = plan(FixedTrace([(100, 4), (80, 2)], gap_s=1.0), SmallModel(), PlanSettings())
    assert result.capture_sizes == [1, 8]
    assert result.prompt_sizes == [256]


def test_runs_count_every_step_with_its_padding() -> None:
    result, _ = plan(FixedTrace([(10, 5), (10, 5), (70, 5)], gap_s=1e-5), SmallModel(), PlanSettings())
    runs = [(run.phase, run.size, run.padded_size, run.count) for run in result.runs]
    assert runs == [("prefill", 10, 64, 2), ("prefill", 70, 256, 1), ("decode", 3, 4, 4)]
    assert (result.num_steps, result.num_decode_steps) == (7, 4)
    assert result.statistics["decode_padding_waste"] == pytest.approx(0.25)
    assert result.statistics["prefill_padding_waste"] == pytest.approx(1 - 90 / 384)
    assert result.statistics["mean_decode_batch"] == 3


def test_rate_is_requests_over_span_and_the_rate_of_the_gaps() -> None:
    result, _ = plan(FixedTrace([(1, 1)] * 5, gap_s=0.5), SmallModel(), PlanSettings())
    assert (result.span_s, result.recorded_rate_per_s) == pytest.approx((2.5, 2.0))
    assert result.statistics["inter_arrival_cv"] == pytest.approx(0)


def test_statistics_tell_raw_from_scaled_lengths() -> None:
    statistics = plan(FixedTrace([(1000, 24), (101, 1)]), SmallModel(), PlanSettings())[0].statistics
    assert (statistics["raw_prompt_tokens_max"], statistics["scaled_prompt_tokens_max"]) == (1000, 250)
    assert (statistics["raw_output_tokens_sum"], statistics["scaled_output_tokens_sum"]) == (25, 7)


def test_the_plan_of_a_seed_is_always_the_same() -> None:
    assert plan(Chat(), SmallModel(), PlanSettings()) == plan(Chat(), SmallModel(), PlanSettings())


@pytest.mark.parametrize(("size", "expected"), [(1, 1), (2, 2), (3, 4), (8, 8)])
def test_padded_is_the_smallest_size_that_holds(size: int, expected: int) -> None:
    assert padded(size, [1, 2, 4, 8]) == expected


@pytest.mark.parametrize(("prompt", "prompt_sizes"), [(300, [64, 256]), (100, [64])])
def test_a_prompt_longer_than_the_model_takes_is_refused_when_not_scaled(prompt: int, prompt_sizes: list[int]) -> None:
    trace, model = FixedTrace([(10, 2), (prompt, 2)]), SmallModel(prompt_sizes=prompt_sizes)
    message = rf"trace: request 1: must fit context_tokens 256 and the largest prompt size \d+; got prompt {prompt} \+ output 2"
    with pytest.raises(UserError, match=message):
        plan(trace, model, PlanSettings(scale_lengths=False))


def test_requests_that_fit_are_taken_as_they_are_when_not_scaled() -> None:
    result, requests = plan(FixedTrace([(10, 2), (64, 3)]), SmallModel(), PlanSettings(scale_lengths=False))
    assert result.length_factor == 1
    assert [r.prompt_tokens for r in requests] == [10, 64]


def test_prompts_are_scaled_to_the_largest_prompt_size_where_that_is_tighter() -> None:
    result, requests = plan(FixedTrace([(128, 8), (20, 3)]), SmallModel(prompt_sizes=[32]), PlanSettings())
    assert result.length_factor == 0.25
    assert [(r.prompt_tokens, r.output_tokens) for r in requests] == [(32, 2), (5, 1)]


def test_a_trace_without_duration_is_refused() -> None:
    with pytest.raises(UserError, match="trace fixed: must have two different arrival times"):
        plan(FixedTrace([(10, 2), (20, 2)], gap_s=0), SmallModel(), PlanSettings())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SmallModel(capture_sizes=[]), "model.capture_sizes: must be positive and ascending"),
        (SmallModel(capture_sizes=[4, 2, 8]), "model.capture_sizes: must be positive and ascending"),
        (SmallModel(prompt_sizes=[0, 64]), "model.prompt_sizes: must be positive and ascending"),
        (SmallModel(max_batch=16), "model.capture_sizes: must end with max_batch 16; got 8"),
        (SmallModel(prompt_sizes=[64, 512]), "model.prompt_sizes: must not exceed context_tokens 256; got 512"),
        (SmallModel(context_tokens=1, prompt_sizes=[1]), "model.context_tokens: must hold a prompt and an output token"),
    ],
)
def test_shapes_that_do_not_fit_together_are_refused(model: SmallModel, message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan(FixedTrace([(1, 1), (1, 1)]), model, PlanSettings())
