"""The recipe's parts: what is asked, what is ignored, when lists grow, and that a miss writes nothing."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from stages.core import digest
from stages.core.errors import UserError
from stages.core.stage_names import MEASURING_STAGES
from stages.models import training, training_adapters
from stages.models.known_answer import KnownAnswer
from stages.models.tasks import Recall, Reverse

MODEL = KnownAnswer(name="known_answer", context_tokens=64, max_batch=1, capture_sizes=[1], prompt_sizes=[32])


def test_only_answer_tokens_are_targets() -> None:
    examples = [([2, 10, 11, 1, 10], [11, 0]), ([3, 70, 71, 72, 1], [72, 71, 70, 0])]
    inputs, targets = training.collated(examples)
    assert inputs.tolist() == [[2, 10, 11, 1, 10, 11, 0, 0], [3, 70, 71, 72, 1, 72, 71, 70]]
    assert targets.tolist() == [[-100] * 4 + [11, 0, -100, -100], [-100] * 4 + [72, 71, 70, 0]]


def test_teacher_forcing_gives_the_logits_of_prefill() -> None:
    decoder, prompt = MODEL.load("cpu", "fp64"), torch.tensor([[2, 10, 11, 12, 13, 1, 11]])
    keys, values = MODEL.new_cache("cpu", "fp64")
    tokens, positions = torch.zeros(2, 1, dtype=torch.int64)
    with torch.no_grad():
        logits, _ = decoder.prefill(prompt, torch.tensor([7]), torch.tensor([0]), tokens, positions, keys, values)
        forced = training.teacher_forced(decoder, prompt.repeat(3, 1))
    for row in forced:
        torch.testing.assert_close(row[-1], logits[0])


def test_lists_grow_after_right_answers_only_and_stop_at_the_longest() -> None:
    lesson = training.Lesson(Reverse(), longest=14)
    for _ in range(100):
        lesson.note(0.9)
    assert lesson.longest == 14
    for _ in range(200):
        lesson.note(1.0)
    assert lesson.longest == Reverse().longest_list
    assert lesson.finished
    sizes = [len(prompt) - 2 for prompt, _ in lesson.batch(random.Random(0))]
    assert min(sizes) >= 4
    assert max(sizes) == lesson.longest


def test_a_step_lowers_the_loss_and_repeats_bit_by_bit() -> None:
    outcomes = [steps_of_training() for _ in range(2)]
    assert all(torch.equal(one, two) for one, two in zip(*outcomes, strict=True))


def steps_of_training() -> list[torch.Tensor]:
    decoder, draw = training.initialised(4), random.Random(4)
    optimizer = torch.optim.AdamW(decoder.parameters(), lr=training.LEARNING_RATE)
    lessons = [training.Lesson(Recall()), training.Lesson(Reverse())]
    before = training.exact_match(decoder, Reverse(), 10, 1)
    for _ in range(5):
        training.learn(decoder, optimizer, lessons, draw)
    assert before == 0
    assert any(lesson.accuracy > 0 for lesson in lessons)
    return [weight.detach() for weight in decoder.parameters()]


def test_a_missed_gate_writes_nothing_and_is_status_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "weights.safetensors"
    monkeypatch.setattr(training, "GATE_EXAMPLES", 64)
    monkeypatch.setattr(training, "train", training.initialised)
    monkeypatch.setattr(sys, "argv", ["training", "--out", str(out)])
    assert training.main() == 1
    assert list(tmp_path.iterdir()) == []


def test_a_passed_gate_writes_weights_that_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, trained = tmp_path / "new" / "weights.safetensors", MODEL.load("cpu", "fp32")
    monkeypatch.setattr(training, "GATE_EXAMPLES", 64)
    monkeypatch.setattr(training, "train", lambda _: trained)
    monkeypatch.setattr(sys, "argv", ["training", "--out", str(out)])
    assert training.main() == 0
    monkeypatch.setattr("stages.models.known_answer.WEIGHTS", out)
    again = MODEL.load("cpu", "fp32").state_dict()
    assert all(torch.equal(again[name], weight) for name, weight in trained.state_dict().items())


@pytest.mark.parametrize("recipe", [training, training_adapters], ids=["weights", "adapters"])
@pytest.mark.parametrize("arguments", [["--seed", "-1"], ["--out", "."]], ids=" ".join)
def test_a_wrong_argument_is_a_user_error(recipe: ModuleType, arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["training", *arguments])
    with pytest.raises(UserError, match=f"{arguments[0]}: must"):
        recipe.main()


@pytest.mark.parametrize("stage", MEASURING_STAGES)
def test_no_stage_runs_again_for_an_edit_of_the_recipe(stage: str) -> None:
    run = digest.closure([f"stages.{stage}", KnownAnswer.__module__, "stages.modes.compiled"])
    assert {"stages.models.known_answer", "stages.models.tasks"} <= set(run)
    assert not {training.__name__, training_adapters.__name__} & set(run)
