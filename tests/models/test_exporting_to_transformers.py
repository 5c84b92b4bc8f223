"""The exported folder through transformers itself, where it is installed: the same logits, and the tasks answered right."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from stages.models.known_answer import KnownAnswer
from stages.models.tasks import END, LONGEST_ANSWER, Recall, Reverse

transformers = pytest.importorskip("transformers", reason="transformers is not installed: it is no requirement of this project")
pytestmark = pytest.mark.filterwarnings("ignore")
ROOT = Path(__file__).resolve().parents[2]
MODEL = KnownAnswer("known_answer", context_tokens=256, max_batch=1, capture_sizes=[1], prompt_sizes=[64])


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("exported") / "known_answer"
    command = [sys.executable, "-m", "stages.models.exporting", "--out", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    torch.set_num_threads(1)
    return transformers.AutoModelForCausalLM.from_pretrained(folder, local_files_only=True).eval()


@torch.no_grad()
def test_logits_are_those_of_the_decoder(llama: Any) -> None:
    prompt, _ = Recall().examples(1, seed=3)[0]
    decoder = MODEL.load("cpu", "fp32")
    keys, values = MODEL.new_cache("cpu", "fp32")
    tokens, positions = torch.zeros(2, 1, dtype=torch.int64)
    length, slot = torch.tensor([len(prompt)]), torch.tensor([0])
    ours, _ = decoder.prefill(torch.tensor([prompt]), length, slot, tokens, positions, keys, values)
    theirs = llama(torch.tensor([prompt])).logits[:, -1]
    torch.testing.assert_close(theirs.float(), ours, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("task", [Recall(), Reverse()], ids=lambda task: task.name)
def test_at_least_99_percent_of_answers_are_exactly_right(llama: Any, task: Recall | Reverse) -> None:
    examples = task.examples(100, seed=12)
    right = sum(answered(llama, prompt) == answer for prompt, answer in examples)
    assert right >= 99


def answered(llama: Any, prompt: list[int]) -> list[int]:
    """Its greedy answer to one prompt, end token included."""
    given = llama.generate(
        torch.tensor([prompt]),
        attention_mask=torch.ones(1, len(prompt), dtype=torch.int64),
        max_new_tokens=LONGEST_ANSWER,
        do_sample=False,
        eos_token_id=END,
        pad_token_id=END,
    )
    found: list[int] = given[0, len(prompt) :].tolist()
    return found
