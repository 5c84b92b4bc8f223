"""One request on its way through the serving loop."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import torch

from stages.core.records.plan import Request


@dataclass(eq=False)
class Sequence:
    """Times in seconds since the run began; `prompt` [n] lies on the device. `last_token_s` is known once it is done.

    `tokens`: those that it got, of a request in the sample; None of the others, which keep none.
    """

    request: Request
    arrival_s: float
    prompt: torch.Tensor
    noticed_s: float | None = None
    begun_s: float | None = None
    first_token_s: float | None = None
    last_token_s: float | None = None
    hit_by: str = ""
    tokens: list[int] | None = None

    def note(self, token: int) -> None:
        """Keep a token, where the request is in the sample."""
        if self.tokens is not None:
            self.tokens.append(token)

    def document(self) -> dict[str, Any]:
        """The `ServedRequest` document; ms from the arrival."""
        completed = self.last_token_s is not None
        return {
            "request_id": self.request.request_id,
            "arrival_s": self.arrival_s,
            "prompt_tokens": self.request.prompt_tokens,
            "output_tokens": self.request.output_tokens,
            "queue_ms": self._since_arrival(self.begun_s),
            "ttft_ms": self._since_arrival(self.first_token_s),
            "tpot_ms": self._tpot_ms(),
            "e2el_ms": self._since_arrival(self.last_token_s),
            "completed": completed,
            "hit_by": self.hit_by,
        }

    def _tpot_ms(self) -> float | None:
        """Mean time of the tokens after the first; None for an answer of one token, or one that is not complete."""
        rest = self.request.output_tokens - 1
        if not rest or self.first_token_s is None or self.last_token_s is None:
            return None
        return 1e3 * (self.last_token_s - self.first_token_s) / rest

    def _since_arrival(self, moment_s: float | None) -> float | None:
        return None if moment_s is None else 1e3 * (moment_s - self.arrival_s)


def note_tokens(sequences: list[Sequence], tokens: list[int]) -> None:
    """Give each sequence the token of its slot to keep."""
    for sequence, token in zip(sequences, tokens, strict=True):
        sequence.note(token)


def choose_sample(sequences: list[Sequence], count: int, seed: int) -> None:
    """Let that many requests, the same for every mode, keep their tokens."""
    for index in random.Random(seed).sample(range(len(sequences)), min(count, len(sequences))):
        sequences[index].tokens = []


def sampled(sequences: list[Sequence]) -> list[dict[str, Any]]:
    """The requests of the sample that got a token: `request_id`, `prompt` and `tokens`."""
    return [
        {"request_id": sequence.request.request_id, "prompt": sequence.prompt.tolist(), "tokens": sequence.tokens}
        for sequence in sequences
        if sequence.tokens
    ]
