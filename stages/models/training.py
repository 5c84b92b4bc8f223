"""How the weights of `known_answer` were made: python -m stages.models.training [--out PATH] [--seed N]

One decoder learns both tasks by teacher forcing, loss on the answers only. Lists start short and grow by one symbol
whenever a task's answer tokens are right often enough (with a fixed schedule recall learns nothing). The recipe is
deterministic for one thread of one kind of CPU; what counts is the gate: at least 99 % of the answers exactly right on
both tasks, examples from a seed of their own, or nothing is written and the exit status is 1.
"""

from __future__ import annotations

import argparse
import random
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import save
from torch import Tensor

from stages.core.atomic import check_writable
from stages.core.errors import UserError, run_command
from stages.models.decoder import Block, LlamaDecoder
from stages.models.known_answer import DIMENSIONS, WEIGHTS, WEIGHTS_RECIPE
from stages.models.tasks import END, SHORTEST_LIST, Example, Recall, Reverse, Shifted

CONTEXT_TOKENS = 64
EXAMPLES_PER_TASK = 32
EMBEDDING_STD = 0.2
MATRIX_STD = 0.06
LEARNING_RATE = 2e-3
NUM_DECAY_STEPS = 1000
MAX_STEPS = 12_000
GROW_ABOVE = 0.95
GATE, GATE_EXAMPLES = 0.99, 4096
GATE_SEED = 1_000_001
IGNORED = -100


@dataclass
class Lesson:
    """One task, the longest list it asks for now, and the running share of right answer tokens."""

    task: Recall | Reverse | Shifted
    longest: int = SHORTEST_LIST
    accuracy: float = 0.0

    def batch(self, draw: random.Random) -> list[Example]:
        """Examples with lists up to the present longest."""
        sizes = (draw.randint(SHORTEST_LIST, self.longest) for _ in range(EXAMPLES_PER_TASK))
        return [self.task.example(draw, size) for size in sizes]

    def note(self, accuracy: float) -> None:
        """Average the last batches; above the mark, lists grow by one and the average starts low again."""
        self.accuracy += 0.1 * (accuracy - self.accuracy)
        if self.accuracy > GROW_ABOVE and self.longest < self.task.longest_list:
            self.longest, self.accuracy = self.longest + 1, GROW_ABOVE - 0.1

    @property
    def finished(self) -> bool:
        """Full length, and nearly all answer tokens right."""
        return self.longest == self.task.longest_list and self.accuracy > 0.99


def train(seed: int) -> LlamaDecoder:
    """The decoder after the recipe with one seed: curriculum at a constant rate, then a linear decay to zero."""
    decoder = initialised(seed)
    optimizer = torch.optim.AdamW(decoder.parameters(), lr=LEARNING_RATE, betas=(0.9, 0.99))
    lessons, draw = [Lesson(Recall()), Lesson(Reverse())], random.Random(seed)
    left = NUM_DECAY_STEPS
    for step in range(MAX_STEPS):
        if step % 200 == 0:
            _report(step, lessons)
        learn(decoder, optimizer, lessons, draw)
        if left < NUM_DECAY_STEPS or all(lesson.finished for lesson in lessons) or step + left >= MAX_STEPS:
            left -= 1
            optimizer.param_groups[0]["lr"] = LEARNING_RATE * left / NUM_DECAY_STEPS
        if left == 0:
            break
    return decoder.requires_grad_(False).eval()


def initialised(seed: int) -> LlamaDecoder:
    """Fresh weights: wide enough (0.2 and 0.06; at 0.02 recall does not start), norms at one."""
    generator = torch.Generator().manual_seed(seed)
    decoder = LlamaDecoder(DIMENSIONS, CONTEXT_TOKENS, "cpu", torch.float32)
    with torch.no_grad():
        for name, weight in decoder.named_parameters():
            if weight.dim() > 1:
                weight.normal_(std=EMBEDDING_STD if "embedding" in name else MATRIX_STD, generator=generator)
    return decoder


def learn(decoder: LlamaDecoder, optimizer: torch.optim.Optimizer, lessons: list[Lesson], draw: random.Random) -> None:
    """One optimizer step on a batch of every lesson."""
    inputs, targets = collated([example for lesson in lessons for example in lesson.batch(draw)])
    logits = teacher_forced(decoder, inputs)
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_([weight for group in optimizer.param_groups for weight in group["params"]], 1.0)
    optimizer.step()
    right, asked = logits.detach().argmax(-1) == targets, targets != IGNORED
    for rows, lesson in zip(torch.arange(len(inputs)).split(EXAMPLES_PER_TASK), lessons, strict=True):
        lesson.note(float(right[rows].sum() / asked[rows].sum()))


def collated(examples: list[Example]) -> tuple[Tensor, Tensor]:
    """Inputs [N, T] padded with END, and targets [N, T]: the next token where it belongs to the answer."""
    length = max(len(prompt) + len(answer) for prompt, answer in examples) - 1
    inputs = torch.full((len(examples), length), END)
    targets = torch.full((len(examples), length), IGNORED)
    for row, (prompt, answer) in enumerate(examples):
        first = len(prompt) - 1
        inputs[row, : first + len(answer)] = torch.tensor([*prompt, *answer[:-1]])
        targets[row, first : first + len(answer)] = torch.tensor(answer)
    return inputs, targets


def teacher_forced(decoder: LlamaDecoder, inputs: Tensor) -> Tensor:
    """Logits [N, T, v] of whole sequences [N, T], no cache: the decoder's own layers around a batched attention."""
    rows, length = inputs.shape
    cos, sin = decoder.rotation(decoder.steps[:length].repeat(rows))
    x: Tensor = decoder.embedding(inputs.flatten())
    for block in decoder.blocks:
        assert isinstance(block, Block), f"a decoder has blocks, not {type(block).__name__}"
        query, key, value = block.project(x, cos, sin)
        query, key, value = (part.unflatten(0, (rows, length)).transpose(1, 2) for part in (query.flatten(1, 2), key, value))
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
        x = block.combine(x, mixed.transpose(1, 2).flatten(0, 1).flatten(1))
    logits, _ = decoder.predict(x)
    return logits.view(rows, length, -1)


def exact_match(decoder: LlamaDecoder, task: Recall | Reverse | Shifted, count: int, seed: int) -> float:
    """Share of examples whose greedy answer is right to the end token.

    Teacher forcing decides this without decoding: an answer is right if and only if every one of its tokens is the
    greedy choice after the right tokens before it.
    """
    inputs, targets = collated(task.examples(count, seed))
    with torch.no_grad():
        right = (teacher_forced(decoder, inputs).argmax(-1) == targets) | (targets == IGNORED)
    return float(right.all(dim=1).float().mean())


def main() -> int:
    """Train, check, write. Status 1 where the gate is missed."""
    out, seed = arguments(WEIGHTS_RECIPE, __doc__.splitlines()[0], WEIGHTS)
    torch.set_num_threads(1)
    decoder = train(seed)
    shares = {task.name: exact_match(decoder, task, GATE_EXAMPLES, GATE_SEED) for task in (Recall(), Reverse())}
    sys.stdout.write(f"exact match: {shares}\n")
    if min(shares.values()) < GATE:
        sys.stdout.write(f"below {GATE}: nothing written; try another --seed\n")
        return 1
    write(out, decoder.state_dict())
    return 0


def arguments(recipe: str, about: str, made: Path) -> tuple[Path, int]:
    """The command's --out and --seed; the folder of the file is made. `made`: the file that the recipe makes by default.

    Raises UserError for a seed out of range, and for a folder in the file's place; OSError for a folder that takes no file.
    """
    parser = argparse.ArgumentParser(prog=recipe, description=about)
    parser.add_argument("--out", type=Path, default=made, help="the file to write (safetensors)")
    parser.add_argument("--seed", type=int, default=0, help="of what is trained, and of the examples")
    chosen = parser.parse_args()
    if not 0 <= chosen.seed < 2**63:
        raise UserError("--seed", "must be from 0 to 2**63 - 1", chosen.seed, "Any small number does.")
    if chosen.out.is_dir():
        raise UserError("--out", "must name a file", str(chosen.out), "Add a file name.")
    check_writable(chosen.out)
    return chosen.out, chosen.seed


def write(file: Path, tensors: dict[str, Tensor]) -> None:
    """Write the tensors beside the file, then rename: it is whole at any time."""
    partial = file.with_name(f"{file.name}.part")
    partial.write_bytes(save(tensors))
    partial.replace(file)
    sys.stdout.write(f"wrote {file}\n")


def _report(step: int, lessons: list[Lesson]) -> None:
    shown = ", ".join(f"{lesson.task.name} to {lesson.longest}: {lesson.accuracy:.3f}" for lesson in lessons)
    sys.stdout.write(f"step {step}: {shown}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    run_command(main)
