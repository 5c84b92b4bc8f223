"""Tasks with known answers, over one vocabulary.

Ids: 0 ends an answer, 1 separates, 2 and 3 open a recall and a reverse prompt, then 64 recall and 32 reverse symbols.
- recall: a list of distinct symbols and one of them; the answer is what follows it in the list, round its end.
  Every step reads the token before it, so a stale input token shows.
- reverse: a list of symbols; the answer is the list backwards. Purely positional, so a wrong position shows.
- shifted: reverse, each symbol moved on; only with the LoRA adapter for that shift, so a stale or wrong adapter shows.
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


@dataclass
class Shifted:
    """The prompt of reverse -> the list backwards, each symbol moved on by `shift` among the 32: what a LoRA adapter adds."""

    name: str
    shift: int
    longest_list: int = 10

    def example(self, draw: random.Random, size: int) -> Example:
        """A prompt and its answer for a list of `size` symbols."""
        prompt, answer = Reverse().example(draw, size)
        return prompt, [*(self._moved(symbol) for symbol in answer[:-1]), END]

    def examples(self, count: int, seed: int) -> list[Example]:
        """`count` pairs of prompt and answer, list sizes uniform from 4 to the longest."""
        return _examples(self, count, seed)

    def _moved(self, symbol: int) -> int:
        return REVERSE_SYMBOLS[(symbol - REVERSE_SYMBOLS[0] + self.shift) % len(REVERSE_SYMBOLS)]


def _examples(task: Recall | Reverse | Shifted, count: int, seed: int) -> list[Example]:
    draw = random.Random(f"{task.name} {seed}")  # a text: no stream that training draws from
    return [task.example(draw, draw.randint(SHORTEST_LIST, task.longest_list)) for _ in range(count)]
