"""The adapter task through the correctness stage's own path: prefill and batched decode on static buffers, scored in two precisions."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from stages.core.build import build
from stages.workers.checking import check
from stages.workers.service import Service
from tests.faults.planted import Planted
from tests.workers.conftest import node, plan_for

CLAIM = {key: value for key, value in node("mode", "eager").items() if key != "_target_"}


@torch.no_grad()
def found(fault: str, precision: str) -> dict[tuple[str, str], dict[str, Any]]:
    """The checks of the tasks, and of the switch."""
    torch.set_num_threads(1)
    model = build(node("model", "known_answer") | {"adapter_rank": 8, "capture_sizes": [1, 8]}, "model")
    mode, plan = Planted(**(CLAIM | {"fault": fault})), plan_for([1, 8], [64], model.context_tokens)
    service = Service(model.load("cpu", precision), model, mode, plan, "cpu", precision)
    documents = check(service, precision, node("mode", "eager"), calls_per_shape=6, num_examples=32)["checks"]
    return {(one["name"], one["subject"]): one for one in documents if one["probe"] in ("known_answers", "adapter_switch")}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_right_with_its_adapter_wrong_with_another_or_none(precision: str) -> None:
    checks = found("healthy", precision)
    assert {one["verdict"] for one in checks.values()} == {"pass"}
    for shift in ("shift_1", "shift_5", "shift_9"):
        assert checks[f"task_{shift}", shift]["value"] >= 0.96  # 31 of 32; the limit is eager's own share
        wrong = [one["value"] for (name, _), one in checks.items() if name == f"task_{shift}_other_adapter"]
        assert wrong == [0.0, 0.0]
    assert {f"task_{task}" for task in ("recall", "reverse")} <= {name for name, _ in checks}


def test_stale_adapter_answers_nothing_and_is_wrong() -> None:
    checks = found("stale_adapter", "fp32")
    assert checks["task_shift_1", "shift_1"]["verdict"] == "fail"
    assert checks["task_shift_1", "shift_1"]["value"] == 0.0
    assert checks["adapter_switch", "decode/8"]["verdict"] == "fail"
    assert checks["task_reverse", "reverse"]["verdict"] == "pass"
