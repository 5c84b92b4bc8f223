"""A mode that answers wrongly is caught: planted faults on the model whose answers are known."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stages.workers.service
from stages.workers.checking import check
from stages.workers.probes.bench import set_up
from stages.workers.service import Service
from tests.workers.conftest import MakeService, node

Step = Callable[[], tuple[torch.Tensor, torch.Tensor]]
IDLE = {"adapter_switch", "custom_ops"}
"""Of a model without adapters and custom operators."""
DECODE = ("decode/1", "decode/8")


@pytest.fixture(autouse=True)
def _no_grad() -> Any:
    with torch.no_grad():
        yield


def checks(service: Service) -> list[dict[str, Any]]:
    return check(service, "fp32", node("mode", "eager"), calls_per_shape=6, num_examples=16)["checks"]


def failed(service: Service) -> set[tuple[str, str]]:
    """(check, subject) of every check that failed."""
    documents = checks(service)
    assert {document["probe"] for document in documents if document["verdict"] == "not_run"} <= IDLE
    return {(document["name"], document["subject"]) for document in documents if document["verdict"] == "fail"}


def test_healthy_mode_passes_every_check(make_service: MakeService) -> None:
    service = make_service("known_answer")
    documents = checks(service)
    others = IDLE | {"batch_invariance"}
    assert {document["verdict"] for document in documents if document["probe"] not in others} == {"pass"}
    assert {document["reason"].partition(":")[0] for document in documents if document["probe"] in IDLE} == {"not applicable"}
    assert {document["verdict"] for document in documents if document["probe"] == "batch_invariance"} == {"reported"}
    forced = [document for document in documents if document["probe"] in ("teacher_forced", "known_answers")]
    assert {document["subject"] for document in forced} == {"prefill/64", "decode/1", "decode/8", "recall", "reverse"}
    assert {document["num_calls"] for document in forced if document["subject"] == "decode/8"} == {6}
    assert {document["num_calls"] for document in forced if document["subject"] == "decode/1"} == {12}  # smallest again
    exact = [document["value"] for document in documents if document["name"].startswith("task_")]
    assert exact == [1.0, 1.0]


def stale_token(service: Service, step: Step) -> Step:
    """The step reads the token of the step before, as a capture on a buffer that is no longer written would."""
    held = service.tokens.clone()

    def run() -> tuple[torch.Tensor, torch.Tensor]:
        current = service.tokens.clone()
        service.tokens.copy_(held)
        held.copy_(current)
        return step()

    return run


def frozen_position(service: Service, step: Step) -> Step:
    """The position does not move on."""

    def run() -> tuple[torch.Tensor, torch.Tensor]:
        before = service.positions.clone()
        outputs = step()
        service.positions.copy_(before)
        return outputs

    return run


def perturbed(service: Service, step: Step) -> Step:
    """One output in a hundred parts too large."""

    def run() -> tuple[torch.Tensor, torch.Tensor]:
        logits, tokens = step()
        logits = logits.clone()
        logits[:, 7] *= 1.01
        return logits, tokens

    return run


@pytest.mark.parametrize(
    ("fault", "caught"),
    [
        (stale_token, {"teacher_forced_logits", "bit_identical_to_eager", "greedy_tokens", "task_recall"}),
        (frozen_position, {"teacher_forced_logits", "bit_identical_to_eager", "task_reverse", "task_recall"}),
        (perturbed, {"teacher_forced_logits", "bit_identical_to_eager", "before_the_churn"}),
    ],
)
def test_planted_fault_is_caught(fault: Callable[[Service, Step], Step], caught: set[str], make_service: MakeService) -> None:
    service = make_service("known_answer")
    service.steps |= {shape: fault(service, service.steps[shape]) for shape in DECODE}
    assert caught <= {name for name, _ in failed(service)}


def test_fault_of_one_shape_is_named_with_that_shape(make_service: MakeService) -> None:
    service = make_service("known_answer")
    service.steps["decode/8"] = perturbed(service, service.steps["decode/8"])
    subjects = {subject for name, subject in failed(service) if name in ("teacher_forced_logits", "bit_identical_to_eager")}
    assert subjects == {"decode/8"}


def test_service_that_runs_one_sequence_more_at_the_largest_size_is_caught(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service("known_answer")
    monkeypatch.setattr(
        stages.workers.service, "_padded", lambda size, sizes: min([one for one in sizes if one >= size], default=sizes[-1])
    )
    assert {subject for name, subject in failed(service) if name == "past_the_largest"} == {"9 sequences, prompt of 65"}


def test_logits_that_are_no_numbers_fail(make_service: MakeService) -> None:
    service = make_service("known_answer")
    step = service.steps["decode/1"]

    def nan() -> tuple[torch.Tensor, torch.Tensor]:
        logits, tokens = step()
        return logits * torch.nan, tokens

    service.steps["decode/1"] = nan
    documents = checks(service)
    broken = {document["name"]: document for document in documents if document["verdict"] == "fail"}
    assert {"finite_logits", "teacher_forced_logits", "kl_divergence", "greedy_tokens", "bit_identical_to_eager"} <= set(broken)
    assert (broken["teacher_forced_logits"]["value"], broken["finite_logits"]["value"]) == (None, 12 * 100)
    json.dumps(documents, allow_nan=False)  # a record has no NaN


def test_layers_compiled_in_place_are_compared_with_eager_layers_on_the_same_weights(make_service: MakeService) -> None:
    service = make_service("tiny")
    for block in service.module.blocks:  # type: ignore[attr-defined]
        block.compile(backend="eager")
    bench = set_up(service, "fp32", node("mode", "eager"), calls_per_shape=6, num_examples=1)
    assert all(block._compiled_call_impl is None for block in bench.eager.module.blocks)  # type: ignore[attr-defined]
    pairs = zip(bench.eager.module.parameters(), service.module.parameters(), strict=True)
    assert all(mine is theirs for mine, theirs in pairs)
    plain = make_service("tiny")
    assert set_up(plain, "fp32", node("mode", "eager"), 6, 1).eager.module is plain.module
