"""The shipped weights answer right through prefill and batched decode on the static cache."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from stages.core.errors import UserError
from stages.core.protocols import Task
from stages.models import known_answer
from stages.models.decoder import LlamaDecoder
from stages.models.known_answer import WEIGHTS, KnownAnswer
from stages.models.tasks import END, LONGEST_ANSWER, VOCAB_SIZE

MODEL = KnownAnswer(name="known_answer", context_tokens=256, max_batch=8, capture_sizes=[1, 2, 4, 8], prompt_sizes=[64, 256])
SEED = 77


Fault = Callable[[int, torch.Tensor, torch.Tensor], object]


def no_fault(step: int, tokens: torch.Tensor, positions: torch.Tensor) -> None:
    pass


def skipped_position(step: int, tokens: torch.Tensor, positions: torch.Tensor) -> None:
    positions.add_(int(step == 0))


def frozen_position(step: int, tokens: torch.Tensor, positions: torch.Tensor) -> None:
    positions.sub_(int(step > 0))


def stale_token(step: int, tokens: torch.Tensor, positions: torch.Tensor) -> None:
    if step == 1:
        tokens.fill_(END)


@torch.no_grad()
def answers(decoder: LlamaDecoder, precision: str, prompts: list[list[int]], fault: Fault = no_fault) -> list[list[int]]:
    """Greedy answers of one batch, each prompt in its own slot, cut after the first end token."""
    keys, values = MODEL.new_cache("cpu", precision)
    tokens, positions = torch.zeros(2, MODEL.max_batch, dtype=torch.int64)
    for slot, prompt in enumerate(prompts):
        padded = torch.zeros(1, MODEL.prompt_sizes[0], dtype=torch.int64)
        padded[0, : len(prompt)] = torch.tensor(prompt)
        decoder.prefill(padded, torch.tensor([len(prompt)]), torch.tensor([slot]), tokens, positions, keys, values)
    columns = [tokens.clone()]
    for step in range(LONGEST_ANSWER - 1):
        fault(step, tokens, positions)
        decoder.decode(tokens, positions, keys, values)
        columns.append(tokens.clone())
    rows = torch.stack(columns, dim=1).tolist()[: len(prompts)]
    return [row[: row.index(END) + 1] if END in row else row for row in rows]


def share_right(task: Task, precision: str, count: int, fault: Fault = no_fault) -> float:
    decoder, examples, right = MODEL.load("cpu", precision), task.examples(count, SEED), 0
    for first in range(0, count, MODEL.max_batch):
        batch = examples[first : first + MODEL.max_batch]
        given = answers(decoder, precision, [prompt for prompt, _ in batch], fault)
        right += sum(answer == expected for answer, (_, expected) in zip(given, batch, strict=True))
    return right / count


@pytest.mark.parametrize("task", MODEL.tasks(), ids=lambda task: task.name)
def test_at_least_99_percent_of_answers_are_exactly_right(task: Task) -> None:
    assert share_right(task, "fp32", count=400) >= 0.99


@pytest.mark.parametrize("task", MODEL.tasks(), ids=lambda task: task.name)
def test_bf16_answers_are_nearly_as_right(task: Task) -> None:
    assert share_right(task, "bf16", count=200) >= 0.98


@pytest.mark.parametrize("fault", [skipped_position, frozen_position, stale_token])
def test_a_fault_that_a_bad_capture_makes_is_seen_by_a_task(fault: Fault) -> None:
    shares = [share_right(task, "fp32", 80, fault) for task in MODEL.tasks()]
    assert min(shares) < 0.5


@pytest.mark.parametrize("task", MODEL.tasks(), ids=lambda task: task.name)
def test_examples_repeat_by_seed_and_stay_inside_the_vocabulary(task: Task) -> None:
    examples = task.examples(50, 5)
    assert examples == task.examples(50, 5) != task.examples(50, 6)
    tokens = [token for prompt, answer in examples for token in prompt + answer]
    assert min(tokens) >= 0
    assert max(tokens) < VOCAB_SIZE == MODEL.vocabulary()
    assert all(answer[-1] == END and END not in prompt + answer[:-1] for prompt, answer in examples)
    assert max(len(answer) for _, answer in examples) <= LONGEST_ANSWER


def test_the_answers_are_the_rules_of_the_tasks() -> None:
    recall, reverse = MODEL.tasks()
    for prompt, answer in recall.examples(30, 1):
        listed, asked = prompt[1:-2], prompt[-1]
        start = listed.index(asked) + 1
        assert answer[:-1] == (listed * 2)[start : start + min(len(listed) - 1, 16)]
    for prompt, answer in reverse.examples(30, 1):
        assert answer[:-1] == prompt[-2:0:-1]


def test_the_weights_file_is_under_2_mb() -> None:
    assert WEIGHTS.stat().st_size < 2e6


@pytest.mark.parametrize("content", [None, b"not weights", b""], ids=["missing", "broken", "empty"])
def test_a_missing_or_broken_weights_file_says_how_to_make_it(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "weights.safetensors"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(known_answer, "WEIGHTS", path)
    with pytest.raises(UserError, match=r"python -m stages\.models\.training"):
        MODEL.load("cpu", "fp32")


def test_a_prompt_size_too_short_for_a_task_is_refused() -> None:
    with pytest.raises(UserError, match="must reach the longest task prompt"):
        replace(MODEL, prompt_sizes=[16])


def test_a_context_too_short_for_a_task_is_refused() -> None:
    with pytest.raises(UserError, match="must hold the longest task"):
        replace(MODEL, context_tokens=32, prompt_sizes=[32])
