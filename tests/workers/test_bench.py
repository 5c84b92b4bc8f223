"""What all probes work on: prompts that leave room, and a reference that needs no padding."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

from stages.core.build import build
from stages.workers.probes.bench import LONGEST_GENERATION, TIE, Reference, prompt_lengths, set_up
from stages.workers.probes.free_running import PROBE, _generate, _parting
from stages.workers.service import Service, random_prompts
from tests.workers.conftest import node, plan_for


@pytest.fixture(autouse=True)
def _no_grad() -> Any:
    with torch.no_grad():
        yield


def service(context_tokens: int, prompt_tokens: int, kind: type[Service] = Service) -> Service:
    changes = {"max_batch": 20, "capture_sizes": [1, 20], "prompt_sizes": [prompt_tokens], "context_tokens": context_tokens}
    model = build({**node("model", "tiny"), **changes}, "model")
    plan = plan_for([1, 20], [prompt_tokens], context_tokens)
    return kind(model.load("cpu", "fp32"), model, build(node("mode", "eager"), "mode"), plan, "cpu", "fp32")


@pytest.mark.parametrize(("context", "prompt"), [(64, 32), (64, 64), (2048, 2048), (17, 17), (16, 16), (2, 2), (2, 1)])
def test_prompts_leave_room_to_generate_and_differ_in_length(context: int, prompt: int) -> None:
    lengths = prompt_lengths(service(context, prompt), 20)
    assert all(1 <= length <= prompt for length in lengths)
    assert lengths[0] == max(lengths) == max(1, min(prompt, context - LONGEST_GENERATION))
    assert lengths[0] < context
    if prompt >= 256:
        assert len(set(lengths)) == 20


@pytest.mark.parametrize(("context", "tokens"), [(64, 16), (24, 16), (8, 7), (2, 1)])
def test_prompts_as_long_as_a_slot_still_generate(context: int, tokens: int) -> None:
    bench = set_up(service(context, context), "fp32", node("mode", "eager"), 6, 16)
    found = list(PROBE.run(bench))
    assert [(one["name"], one["verdict"], one["num_calls"]) for one in found] == [
        ("free_running_tokens", "pass", tokens),
        ("sampled_tokens", "pass", tokens),
    ]
    assert {one["reason"] for one in found} == {f"of 20 rows over {tokens} tokens; all equal eager's"}


def test_logits_twice_too_large_leave_greedy_tokens_alone_and_change_sampled_ones() -> None:
    found = set_up(service(64, 64), "fp32", node("mode", "eager"), 6, 16)
    for shape, step in found.service.steps.items():
        found.service.steps[shape] = partial(scaled, step, 2.0)
    greedy, sampled = PROBE.run(found)
    assert (greedy["verdict"], greedy["value"]) == ("pass", 0)
    assert (sampled["verdict"], sampled["value"] > 10) == ("fail", True)
    assert ": a fault, margin" in sampled["reason"]


def test_rounding_that_turns_a_token_is_a_tie() -> None:
    eager, exact = torch.tensor([[1.0, 1.0 + 1e-6], [0.0, 3.0]]), torch.tensor([[1.0 + 1e-6, 1.0], [0.0, 3.0]])
    parting = _parting(eager, exact, torch.tensor([0, 0]))
    assert parting is not None
    assert parting.step == 0
    assert parting.margin <= TIE * parting.noise
    assert _parting(eager, exact, torch.tensor([1, 1])) is None


def test_fixed_generator_draws_the_same_tokens_again() -> None:
    found = set_up(service(64, 64), "fp32", node("mode", "eager"), 6, 16)
    draws = [_generate(found.eager, 20, 4, draws=True).argmax(dim=-1) for _ in range(2)]
    assert torch.equal(*draws)
    found.eager.draw = 1
    assert not torch.equal(draws[0], _generate(found.eager, 20, 4, draws=True).argmax(dim=-1))


def scaled(step: Callable[[], Any], factor: float) -> Any:
    """A step whose logits are too large."""
    logits, tokens = step()
    return logits * factor, tokens


def test_reference_without_padding_answers_as_the_padded_step() -> None:
    padded, exact = service(64, 64), service(64, 64, Reference)
    for slot, prompt in enumerate(random_prompts(padded, [1, 7, 33, 64], seed=3)):
        torch.testing.assert_close(exact.prefill(slot, prompt)[0], padded.prefill(slot, prompt)[0], rtol=1e-5, atol=1e-5)
    for _ in range(3):
        torch.testing.assert_close(exact.decode(20)[0][:4], padded.decode(20)[0][:4], rtol=1e-5, atol=1e-5)
