"""Adapter ids of requests: the rule, the CSV column, the room that the model must have."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from stages.core.errors import UserError
from stages.core.records.plan import Request
from stages.traces.adapters import ChatWithAdapters, with_adapters
from stages.traces.canonical import Canonical
from stages.traces.chat import Chat
from stages.traces.planning import PlanSettings, plan


def requests(count: int) -> list[Request]:
    return [Request(request_id=i, arrival_s=float(i), prompt_tokens=4, output_tokens=2) for i in range(count)]


def ids(count: int, num_adapters: int, alpha: float) -> list[int]:
    return [one.adapter_id for one in with_adapters(requests(count), num_adapters, alpha, seed=0) if one.adapter_id is not None]


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0])
def test_ids_follow_the_power_law(alpha: float) -> None:
    found = Counter(ids(20_000, 4, alpha))
    expected = numpy.diff([(i / 4) ** alpha for i in range(5)])  # P(power(alpha) < x) = x^alpha
    assert [found[i] / 20_000 for i in range(4)] == pytest.approx(expected.tolist(), abs=0.01)


def test_ids_repeat_with_the_seed_and_change_nothing_else() -> None:
    plain, adapted = Chat(num_requests=50, seed=3), ChatWithAdapters(num_requests=50, seed=3, num_adapters=5)
    assert adapted.requests() == adapted.requests()
    assert [one.model_copy(update={"adapter_id": None}) for one in adapted.requests()] == plain.requests()
    assert {one.adapter_id for one in adapted.requests()} <= set(range(5))


def test_column_of_a_csv_is_read_and_may_be_empty(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("request_id,arrival_s,prompt_tokens,output_tokens,adapter_id\n0,0,4,2,7\n1,1,4,2,\n")
    assert [one.adapter_id for one in Canonical("canonical", str(file)).requests()] == [7, None]


@pytest.mark.parametrize("cell", ["x", "-1", "1.5"])
def test_adapter_that_is_no_number_is_refused(cell: str, tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text(f"request_id,arrival_s,prompt_tokens,output_tokens,adapter_id\n0,0,4,2,{cell}\n")
    with pytest.raises(UserError, match="column adapter_id: must be a whole number"):
        Canonical("canonical", str(file)).requests()


@pytest.mark.parametrize("key", ["num_adapters", "adapter_alpha"])
def test_rule_without_adapters_is_refused(key: str) -> None:
    numbers: dict[str, Any] = {key: 0}
    with pytest.raises(UserError, match=rf"trace\.{key}"):
        ChatWithAdapters(**numbers)


def test_model_without_room_refuses_the_trace() -> None:
    sizes = {"context_tokens": 64, "max_batch": 2, "capture_sizes": [1, 2], "prompt_sizes": [32]}
    trace = ChatWithAdapters(num_requests=4)
    with pytest.raises(UserError, match=r"model\.adapter_rank: must be above 0: 4 requests ask for an adapter; got 0"):
        plan(trace, SimpleNamespace(**sizes), PlanSettings())
    found, _ = plan(trace, SimpleNamespace(**sizes, adapter_rank=2), PlanSettings())
    assert found.num_requests == 4
