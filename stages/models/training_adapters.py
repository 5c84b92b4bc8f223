"""How the adapters of `known_answer` were made: python -m stages.models.training_adapters [--out PATH] [--seed N]

The trained decoder stays as it is; one LoRA adapter a task learns to shift the reversed list by so many symbols. Lists start
short and grow, as in `stages.models.training`. The gate: at least 99 % of the answers exactly right with the adapter of the
task, none with another one or without, examples from a seed of their own; else nothing is written and the status is 1.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping

import torch
from torch import Tensor

from stages.core.errors import run_command
from stages.models.adapters import adapter_buffers, switch_adapter
from stages.models.decoder import LlamaDecoder
from stages.models.known_answer import ADAPTER_RANK, ADAPTERS, ADAPTERS_RECIPE, LONGEST_PROMPT, SHIFTED, KnownAnswer
from stages.models.tasks import Shifted
from stages.models.training import GATE, GATE_EXAMPLES, GATE_SEED, Lesson, arguments, exact_match, learn, write

LEARNING_RATE = 4e-3
NUM_DECAY_STEPS = 400
MAX_STEPS = 4_000

Adapter = dict[str, Tensor]


def decoder_for_adapters() -> LlamaDecoder:
    """The trained decoder with room for an adapter, its own weights fixed."""
    model = KnownAnswer("known_answer", LONGEST_PROMPT + 17, 1, [1], [LONGEST_PROMPT], adapter_rank=ADAPTER_RANK)
    return model.load("cpu", "fp32")


def train(decoder: LlamaDecoder, task: Shifted, seed: int) -> Adapter:
    """One adapter: curriculum at a constant rate, then a linear decay to zero."""
    buffers = adapter_buffers(decoder)
    initialise(buffers, seed)
    optimizer = torch.optim.AdamW(list(buffers.values()), lr=LEARNING_RATE, betas=(0.9, 0.99), weight_decay=0.0)
    lesson, draw, left = Lesson(task), random.Random(f"{task.name} {seed}"), NUM_DECAY_STEPS
    for step in range(MAX_STEPS):
        if step % 200 == 0:
            sys.stdout.write(f"{task.name}, step {step}: lists to {lesson.longest}, {lesson.accuracy:.3f}\n")
            sys.stdout.flush()
        learn(decoder, optimizer, [lesson], draw)
        if left < NUM_DECAY_STEPS or lesson.finished or step + left >= MAX_STEPS:
            left -= 1
            optimizer.param_groups[0]["lr"] = LEARNING_RATE * left / NUM_DECAY_STEPS
        if left == 0:
            break
    return {name: buffer.requires_grad_(False).clone() for name, buffer in buffers.items()}


def initialise(buffers: Mapping[str, Tensor], seed: int) -> None:
    """`down` seeded with unit gain, `up` zero: no change at first (LoRA's own initialisation)."""
    generator = torch.Generator().manual_seed(seed)
    for name, buffer in buffers.items():
        buffer.requires_grad_(False)
        if name.endswith(".down"):
            buffer.normal_(std=buffer.shape[1] ** -0.5, generator=generator)
        else:
            buffer.zero_()
        buffer.requires_grad_(True)


def shares(decoder: LlamaDecoder, adapters: Mapping[str, Adapter], count: int, seed: int) -> dict[str, dict[str, float]]:
    """Exact match of each task under each adapter, and under none (`none`)."""
    found: dict[str, dict[str, float]] = {}
    for task in SHIFTED:
        for name, adapter in (*adapters.items(), ("none", None)):
            switch_adapter(decoder, adapter)
            found.setdefault(task.name, {})[name] = exact_match(decoder, task, count, seed)
    switch_adapter(decoder, None)
    return found


def passes(found: Mapping[str, Mapping[str, float]]) -> bool:
    """The gate: the right adapter nearly always, any other and none never."""
    right = all(found[task][task] >= GATE for task in found)
    return right and not any(share for task in found for name, share in found[task].items() if name != task)


def main() -> int:
    """Train, check, write. Status 1 where the gate is missed."""
    out, seed = arguments(ADAPTERS_RECIPE, __doc__.splitlines()[0], ADAPTERS)
    torch.set_num_threads(1)
    decoder = decoder_for_adapters()
    adapters = {task.name: train(decoder, task, seed) for task in SHIFTED}
    found = shares(decoder, adapters, GATE_EXAMPLES, GATE_SEED)
    sys.stdout.write("".join(f"exact match of {task}: {row}\n" for task, row in found.items()))
    if not passes(found):
        sys.stdout.write(f"below {GATE}, or right with a wrong adapter: nothing written; try another --seed\n")
        return 1
    write(out, {f"{task}/{name}": value for task, adapter in adapters.items() for name, value in adapter.items()})
    return 0


if __name__ == "__main__":
    run_command(main)
