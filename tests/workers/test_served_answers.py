"""Which tokens are kept, and what is a tie or a fault among them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from stages.workers.served_answers import LONGEST, compare
from stages.workers.service import Service
from stages.workers.serving import serve
from tests.workers.conftest import MakeService, node

LENGTHS = [(5, 4), (12, 1), (32, 20), (3, 2), (9, 5), (20, 3)]


@pytest.fixture(autouse=True)
def _no_grad() -> Iterator[None]:
    with torch.no_grad():
        yield


def sample(service: Service, count: int) -> list[dict[str, Any]]:
    requests = [
        {"request_id": index, "arrival_s": 0.001 * index, "prompt_tokens": prompt, "output_tokens": output}
        for index, (prompt, output) in enumerate(LENGTHS)
    ]
    found: list[dict[str, Any]] = serve(service, requests, 1, 1, 30, num_sampled=count)["sampled"]
    return found


def compared(service: Service, sampled: list[dict[str, Any]]) -> dict[str, Any]:
    return compare(service, "fp32", node("mode", "eager"), sampled)


def test_sampled_requests_keep_every_token_and_the_others_none(make_service: MakeService) -> None:
    every = sample(make_service("tiny"), 99)
    assert [(len(one["prompt"]), len(one["tokens"])) for one in every] == LENGTHS
    some = sample(make_service("tiny"), 3)
    assert len(some) == 3
    assert all(one in every for one in some)  # the same requests, the same answers
    assert sample(make_service("tiny"), 0) == []


def test_tokens_served_in_batches_are_those_of_eager_alone(make_service: MakeService) -> None:
    service = make_service("tiny")
    sampled = sample(service, 99)
    found = compared(service, sampled)
    assert (found["verdict"], found["num_faults"], found["num_requests"]) == ("correct", 0, 6)
    assert found["num_tokens"] == sum(min(output, LONGEST) for _, output in LENGTHS)


def test_one_wrong_token_is_one_fault_and_what_follows_is_judged_on_its_own(make_service: MakeService) -> None:
    service = make_service("tiny")
    sampled = sample(service, 99)
    (long,) = [one for one in sampled if one["request_id"] == 2]
    long["tokens"][7] = (long["tokens"][7] + 1) % service.model.vocabulary()
    found = compared(service, [long])
    first = found["first"]
    assert (first["request_id"], first["token"], first["is_fault"]) == (2, 7, True)
    assert first["given_up"] >= first["margin"] > 4 * first["noise"] > 0
    assert found["verdict"] == "wrong"


def test_second_best_within_eagers_own_error_is_a_tie(make_service: MakeService) -> None:
    service = make_service("tiny")
    weight = service.module.embedding.weight  # type: ignore[attr-defined]
    (one,) = [request for request in sample(service, 99) if request["request_id"] == 1]
    weight[one["tokens"][0]].add_(0)
    twin = (one["tokens"][0] + 1) % len(weight)
    weight[twin].copy_(weight[one["tokens"][0]] * (1 - 1e-7))  # a token whose logit is the same but for rounding
    found = compared(service, [one | {"tokens": [twin]}])
    assert (found["num_faults"], found["verdict"]) == (0, "correct")
    assert found["num_ties"] <= 1


def test_nothing_sampled_is_not_checked(make_service: MakeService) -> None:
    assert compared(make_service("tiny"), [])["verdict"] == "not_checked"
