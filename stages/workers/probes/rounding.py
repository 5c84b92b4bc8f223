"""How large a mode's errors may be, from eager's own, where only few tokens were compared.

A trained model's errors have a long tail: of 2,160 tokens in bf16 one had 99 times the mean squared error, and which token it
is depends on the rounding. Over six tokens two healthy roundings differ by more than a factor of two in one case of 250. A
token's squared error, relative to its logits, is therefore taken as gamma distributed, with eager's mean and variance over
`NUM_TOKENS` tokens, and a limit over n tokens is raised by the quantile of a mean of n such values.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

FALSE_ALARM = 1e-3
"""Probability that errors as large as they may be exceed a limit by chance. Eager's own size is half of that or less."""
NUM_TOKENS = 96
MOST_ROWS = 16


@dataclass(frozen=True)
class Rounding:
    """`mean`: eager's squared error a token, relative to its logits'. `shape`: mean squared over variance, of one token."""

    mean: float
    shape: float

    def tail(self, num_tokens: float) -> float:
        """What a mean over so many tokens exceeds with probability `FALSE_ALARM`, as a multiple of its expectation."""
        from scipy.stats import gamma

        shape = self.shape * num_tokens
        return float(gamma.isf(FALSE_ALARM, shape)) / shape if 0 < shape < float("inf") else 1.0


def rounding(logits: torch.Tensor, exact: torch.Tensor) -> Rounding:
    """Of eager's logits [n, v] beside those of the reference."""
    known = exact.double()
    squared = (logits.double() - known).square().sum(dim=-1) / known.square().sum(dim=-1).clamp(min=1e-300)
    mean, variance = float(squared.mean()), float(squared.var())
    return Rounding(mean, mean * mean / variance if variance > 0 else float("inf"))
