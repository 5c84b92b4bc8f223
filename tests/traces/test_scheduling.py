from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stages.core.errors import UserError
from stages.core.records.plan import Request
from stages.traces.scheduling import PlanSettings, ScheduledStep, compaction_moves, simulate

REQUESTS = st.lists(st.tuples(st.floats(0, 0.2), st.integers(1, 50), st.integers(1, 30)), min_size=1, max_size=40)


def requests_of(lines: Sequence[tuple[float, int, int]]) -> list[Request]:
    ordered = enumerate(sorted(lines))
    return [Request(request_id=7 + i, arrival_s=a, prompt_tokens=p, output_tokens=o) for i, (a, p, o) in ordered]


def steps_of(lines: Sequence[tuple[float, int, int]], max_batch: int = 8) -> list[ScheduledStep]:
    return list(simulate(requests_of(lines), max_batch, PlanSettings(), lambda tokens: tokens))


@given(REQUESTS, st.integers(1, 6))
@settings(deadline=None)
def test_every_request_gets_its_tokens_when_slots_are_driven_by_the_steps(lines: list[tuple[float, int, int]], max_batch: int) -> None:
    """Mirrors a worker: real slots, tokens counted one by one, the oldest rule of compaction written out."""
    tokens: Counter[int] = Counter()
    slots: list[int] = []
    admitted: list[int] = []
    wanted = {request.request_id: request for request in requests_of(lines)}
    for step in simulate(list(wanted.values()), max_batch, PlanSettings(), lambda tokens: tokens):
        if step.request_id is not None:
            assert step.phase == "prefill"
            assert step.size == wanted[step.request_id].prompt_tokens
            admitted.append(step.request_id)
            slots.append(step.request_id)
            tokens[step.request_id] += 1
        else:
            assert step.phase == "decode"
            assert step.size == len(slots)
            tokens.update(slots)
        assert 1 <= len(slots) <= max_batch
        complete = [slot for slot, name in enumerate(slots) if tokens[name] == wanted[name].output_tokens]
        assert list(step.finished) == complete[::-1]
        for slot in step.finished:
            slots[slot] = slots[-1]
            slots.pop()
    assert slots == []
    assert admitted == list(wanted)
    assert tokens == {name: request.output_tokens for name, request in wanted.items()}


@given(st.integers(1, 20).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1)))))
def test_compaction_leaves_a_prefix_of_the_unfinished(case: tuple[int, set[int]]) -> None:
    num_active, finished = case
    slots = list(range(num_active))
    for source, target in compaction_moves(num_active, tuple(finished)):
        slots[target] = slots[source]
    assert sorted(slots[: num_active - len(finished)]) == sorted(set(range(num_active)) - finished)


def test_a_waiting_request_is_prefilled_before_the_next_decode_step() -> None:
    steps = steps_of([(0, 10, 3), (0.001, 10, 2)])
    assert [(s.phase, s.size, s.finished) for s in steps] == [
        ("prefill", 10, ()),
        ("decode", 1, ()),
        ("prefill", 10, ()),
        ("decode", 2, (1, 0)),
    ]


def test_a_request_of_one_output_token_ends_in_its_prefill() -> None:
    assert [(s.phase, s.finished) for s in steps_of([(0, 10, 1)])] == [("prefill", (0,))]


def test_a_full_batch_lets_requests_wait() -> None:
    assert [s.phase for s in steps_of([(0, 10, 2), (0, 10, 2)], max_batch=1)] == ["prefill", "decode", "prefill", "decode"]


def test_virtual_time_counts_steps_prompts_and_idle_gaps() -> None:
    steps = steps_of([(0, 100, 2), (1.0, 200, 2)])
    assert [s.end_s for s in steps] == pytest.approx([0.001, 0.006, 1.002, 1.007])


def test_padding_lengthens_a_prefill() -> None:
    steps = simulate(requests_of([(0, 100, 1)]), 8, PlanSettings(), lambda tokens: 512)
    assert [s.end_s for s in steps] == pytest.approx([512e-5])


def test_a_hundred_thousand_steps_take_under_two_seconds() -> None:
    lines = [(0.0, 1, 3000 + i % 100) for i in range(2000)]
    start_s = time.process_time()
    steps = steps_of(lines, max_batch=64)
    assert len(steps) > 90_000
    assert time.process_time() - start_s < 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"policy": "fifo"}, "measure.plan.policy: must be one of prefill_first; got fifo"),
        ({"virtual_decode_step_ms": 0.0}, "measure.plan.virtual_decode_step_ms: must be from"),
        ({"virtual_prefill_us_per_token": -1.0}, "measure.plan.virtual_prefill_us_per_token: must be from 0"),
    ],
)
def test_a_setting_out_of_range_is_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(UserError, match=message):
        PlanSettings(**change)  # type: ignore[arg-type]
