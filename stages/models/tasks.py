"""Two tasks with known answers, over one vocabulary.

Ids: 0 ends an answer, 1 separates, 2 and 3 open a recall and a reverse prompt, then 64 recall and 32 reverse symbols.
- recall: a list of distinct symbols and one of them; the answer is what follows it in the list, round its end.
  Every step reads the token before it, so a stale input token shows.
- reverse: a list of symbols; the answer is the list backwards. Purely positional, so a wrong position shows.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

END, SEPARATOR, RECALL, REVERSE = range(4)
RECALL_SYMBOLS = range(4, 68)
REVERSE_SYMBOLS = range(68, 100)
VOCAB_SIZE = 100
SHORTEST_LIST = 4
LONGEST_ANSWER = 17
"""Tokens, the end token included."""

Example = tuple[list[int], list[int]]


@dataclass
class Recall:
    """[RECALL, s1..sn, SEPARATOR, si] -> [s(i+1).. round the list, at most 16 and fewer than n, END]."""

    name: str = "recall"
    longest_list: int = 24

    def example(self, draw: random.Random, size: int) -> Example:
        """A prompt and its answer for a list of `size` symbols."""
        symbols = draw.sample(RECALL_SYMBOLS, size)
        start = draw.randrange(size)
        length = min(size - 1, LONGEST_ANSWER - 1)
        answer = [symbols[(start + offset) % size] for offset in range(1, length + 1)]
        return [RECALL, *symbols, SEPARATOR, symbols[start]], [*answer, END]

    def examples(self, count: int, seed: int) -> list[Example]:
        """`count` pairs of prompt and answer, list sizes uniform from 4 to the longest."""
        return _examples(self, count, seed)


@dataclass
class Reverse:
    """[REVERSE, s1..sn, SEPARATOR] -> [sn..s1, END]; symbols may repeat."""

    name: str = "reverse"
    longest_list: int = 16

    def example(self, draw: random.Random, size: int) -> Example:
        """A prompt and its answer for a list of `size` symbols."""
        symbols = draw.choices(REVERSE_SYMBOLS, k=size)
        return [REVERSE, *symbols, SEPARATOR], [*reversed(symbols), END]

    def examples(self, count: int, seed: int) -> list[Example]:
        """`count` pairs of prompt and answer, list sizes uniform from 4 to the longest."""
        return _examples(self, count, seed)


def _examples(task: Recall | Reverse, count: int, seed: int) -> list[Example]:
    draw = random.Random(f"{task.name} {seed}")  # a text: no stream that training draws from
    return [task.example(draw, draw.randint(SHORTEST_LIST, task.longest_list)) for _ in range(count)]
