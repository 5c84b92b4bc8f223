"""The shipped adapters answer their own task and no other; the recipe repeats bit by bit; a miss writes nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from stages.core.errors import UserError
from stages.models import known_answer, training_adapters
from stages.models.adapters import adapter_buffers
from stages.models.known_answer import ADAPTERS, SHIFTED, WEIGHTS, KnownAnswer
from stages.models.tasks import END, REVERSE_SYMBOLS

SIZES: dict[str, Any] = {"context_tokens": 64, "max_batch": 2, "capture_sizes": [1, 2], "prompt_sizes": [32]}
MODEL = KnownAnswer("known_answer_adapters", **SIZES, adapter_rank=8)


def test_answers_are_the_reversed_list_moved_on() -> None:
    first, *_, last = REVERSE_SYMBOLS
    task = SHIFTED[1]
    for prompt, answer in task.examples(30, 1):
        moved = [(symbol - first + 5) % 32 + first for symbol in prompt[-2:0:-1]]
        assert answer == [*moved, END]
        assert all(first <= symbol <= last for symbol in answer[:-1])


def test_each_adapter_is_right_on_its_own_task_alone() -> None:
    found = training_adapters.shares(MODEL.load("cpu", "fp32"), MODEL.adapters(), count=300, seed=5)
    assert set(found) == set(MODEL.adapters()) == {task.name for task in SHIFTED}
    for task, row in found.items():
        assert row[task] >= 0.99
        assert {share for name, share in row.items() if name != task} == {0.0}
    assert training_adapters.passes(found)


@pytest.mark.parametrize(
    "row", [{"a": 0.98, "b": 0.0, "none": 0.0}, {"a": 1.0, "b": 0.01, "none": 0.0}, {"a": 1.0, "b": 0.0, "none": 0.01}]
)
def test_gate_wants_the_right_adapter_nearly_always_and_another_never(row: dict[str, float]) -> None:
    assert not training_adapters.passes({"a": row})
    assert training_adapters.passes({"a": {"a": 0.99, "b": 0.0, "none": 0.0}})


def test_weights_in_the_repository_are_under_2_mb_together() -> None:
    assert WEIGHTS.stat().st_size + ADAPTERS.stat().st_size < 2e6
    assert MODEL.files() == [WEIGHTS, ADAPTERS]


def test_training_repeats_bit_by_bit_and_leaves_the_weights_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_adapters, "MAX_STEPS", 4)
    monkeypatch.setattr(training_adapters, "NUM_DECAY_STEPS", 2)
    torch.set_num_threads(1)
    decoder = training_adapters.decoder_for_adapters()
    before = {name: weight.clone() for name, weight in decoder.named_parameters()}
    one, two = (training_adapters.train(decoder, SHIFTED[0], seed=3) for _ in range(2))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert any(value.abs().max() > 0 for name, value in one.items() if name.endswith(".up"))
    assert all(torch.equal(before[name], weight) for name, weight in decoder.named_parameters())


def trained(monkeypatch: pytest.MonkeyPatch, out: Path, found: float) -> int:
    decoder = MODEL.load("cpu", "fp32")
    monkeypatch.setattr(training_adapters, "train", lambda *_: {name: one.clone() for name, one in adapter_buffers(decoder).items()})
    monkeypatch.setattr(training_adapters, "shares", lambda *_: {task.name: {task.name: found} for task in SHIFTED})
    monkeypatch.setattr(sys, "argv", ["training_adapters", "--out", str(out)])
    return training_adapters.main()


def test_a_missed_gate_writes_nothing_and_is_status_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert trained(monkeypatch, tmp_path / "adapters.safetensors", 0.98) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_passed_gate_writes_adapters_that_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "new" / "adapters.safetensors"
    assert trained(monkeypatch, out, 1.0) == 0
    monkeypatch.setattr(known_answer, "ADAPTERS", out)
    shapes = {name: buffer.shape for name, buffer in adapter_buffers(MODEL.load("cpu", "fp32")).items()}
    assert all({name: value.shape for name, value in adapter.items()} == shapes for adapter in MODEL.adapters().values())


def test_a_missing_file_says_how_to_make_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_answer, "ADAPTERS", tmp_path / "none.safetensors")
    with pytest.raises(UserError, match=r"python -m stages\.models\.training_adapters"):
        MODEL.adapters()


@pytest.mark.parametrize("keys", [{"adapter_rank": 4}, {"adapter_rank": 8, "adapter_scale": 2.0}])
def test_another_rank_or_scale_than_trained_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"model\.adapter_rank: must be 0, or 8 with adapter_scale 1"):
        KnownAnswer("known_answer", **SIZES, **keys)


def test_without_room_for_adapters_there_are_no_such_tasks() -> None:
    plain = KnownAnswer("known_answer", **SIZES)
    assert (plain.adapters(), [task.name for task in plain.tasks()]) == ({}, ["recall", "reverse"])
