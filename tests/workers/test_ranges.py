"""The names of the NVTX ranges around steps and profiled calls."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch

from stages.core.records.plan import Request
from stages.workers.profiling import profile_shapes
from stages.workers.walking import served
from tests.workers.conftest import MakeService


def test_ranges_name_mode_phase_step_real_and_padded_size(make_service: MakeService, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    open_ranges: list[str] = []
    service = make_service("tiny")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda.nvtx, "range_push", lambda name: (names.append(name), open_ranges.append(name)))
    monkeypatch.setattr(torch.cuda.nvtx, "range_pop", lambda: open_ranges.pop())
    requests = [Request(request_id=i, arrival_s=0.001 * i, prompt_tokens=5, output_tokens=2) for i in range(2)]
    for _ in served(service, requests, 4, {}):
        assert open_ranges == []
    assert names == [
        "eager prefill step 0 size 5 padded 32",
        "eager decode step 1 size 1 padded 1",
        "eager prefill step 2 size 5 padded 32",
        "eager decode step 3 size 1 padded 1",
    ]


def test_profiled_calls_are_marked_too(make_service: MakeService, monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    monkeypatch.setattr("stages.workers.profiling.marked", lambda name: (names.append(name), nullcontext())[1])
    profile_shapes(make_service("tiny"), num_calls=1)
    assert names == ["eager prefill/32 call 0", "eager decode/2 call 0", "eager decode/1 call 0"]
