"""Adapters along a walk: whose adapter a step runs under, when the service switches, and what a switch leaves alone."""

from __future__ import annotations

import pytest
import torch

from stages.core.build import build
from stages.core.records.plan import Request
from stages.models.adapters import adapter_buffers
from stages.workers.adapter_bank import AdapterBank
from stages.workers.service import Service
from stages.workers.step_ledger import StepLedger
from stages.workers.walking import served
from tests.workers.conftest import node, plan_for


@pytest.fixture
def service() -> Service:
    torch.set_num_threads(1)
    model = build({**node("model", "tiny"), "adapter_rank": 2}, "model")
    plan = plan_for([1, 2], [32], model.context_tokens)
    return Service(model.load("cpu", "fp32"), model, build(node("mode", "eager"), "mode"), plan, "cpu", "fp32")


def request(number: int, arrival_s: float, output_tokens: int, adapter_id: int | None) -> Request:
    return Request(request_id=number, arrival_s=arrival_s, prompt_tokens=4, output_tokens=output_tokens, adapter_id=adapter_id)


@torch.no_grad()
def test_prefill_runs_under_its_request_s_adapter_and_decode_under_the_first_slot_s(service: Service) -> None:
    requests = [request(0, 0.0, 3, 5), request(1, 0.0, 4, 7)]
    steps = [(done.step.phase, done.adapter_id, done.switched) for done in served(service, requests, 10, {})]
    assert steps == [
        ("prefill", 5, True),
        ("prefill", 7, True),
        ("decode", 5, True),
        ("decode", 5, False),
        ("decode", 7, True),  # the first request has finished, the other moved into its slot
    ]


@torch.no_grad()
def test_switch_copies_into_the_same_buffers_and_is_made_only_where_needed(service: Service) -> None:
    addresses = {name: buffer.data_ptr() for name, buffer in adapter_buffers(service.module).items()}  # type: ignore[arg-type]
    bank = AdapterBank(service)
    assert [bank.use(adapter_id) for adapter_id in (3, 3, None, 4, 3)] == [True, False, False, True, True]
    after = adapter_buffers(service.module)  # type: ignore[arg-type]
    assert {name: buffer.data_ptr() for name, buffer in after.items()} == addresses
    assert all(bool(buffer.abs().sum() > 0) for buffer in after.values())


def test_ledger_counts_switches_and_the_paths_after_them() -> None:
    class Silent:
        said: tuple[str, ...] = ()

        def snapshot(self) -> object:
            from collections import Counter

            return Counter[str]()

    ledger = StepLedger(Silent(), Silent(), "none", 3)
    for adapter_id, switched in ((1, True), (1, False), (2, True)):
        ledger.add("decode", 1, 1, 0.0, adapter_id, switched)
    assert ledger.document()["adapters"] == {"num_adapters": 2, "num_switches": 2, "paths_after_switch": {"eager": 2}}
    plain = StepLedger(Silent(), Silent(), "none", 1)
    plain.add("decode", 1, 1, 0.0)
    assert plain.document()["adapters"] is None
