"""How far a mode's distributions may lie from the reference's, judged by how far eager's lie.

To second order KL(p || q) is half the variance, under p, of the errors of the logits. Independent errors of one variance make
that, on average, the variance times the token's `spread`, (1 - sum p^2) / 2. Few tokens of a trained model have any spread,
so the sum over a handful is nearly one squared error: between two healthy roundings of the same six tokens factors of 20 were
seen. Eager's variance is therefore estimated over the tokens of all shapes, and the limit of one shape is raised as that of an
error is, for the effective number of its tokens (Satterthwaite, Biometrics Bulletin 2, 1946).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import torch

from stages.workers.probes.rounding import Rounding


@dataclass
class Divergences:
    """Of the tokens of one shape: sums of KL(reference || service) in nats, and each token's spread."""

    mode: float = 0.0
    eager: float = 0.0
    spreads: list[float] = field(default_factory=list)

    def add(self, mode: torch.Tensor, eager: torch.Tensor, exact: torch.Tensor) -> None:
        """Logits [n, v] of the three services, in float64."""
        known = exact.log_softmax(dim=-1)
        self.mode += _divergence(known, mode)
        self.eager += _divergence(known, eager)
        self.spreads += ((1 - (2 * known).exp().sum(dim=-1)) / 2).clamp(min=0).tolist()

    def mean(self, name: str) -> float:
        """Nats a token of `mode` or `eager`."""
        return float(getattr(self, name)) / max(len(self.spreads), 1)

    def limit(self, variance: float, rounding: Rounding) -> float:
        """Nats a token that errors of this variance, distributed as eager's, exceed with probability `FALSE_ALARM`."""
        total, squares = sum(self.spreads), sum(spread * spread for spread in self.spreads)
        if not squares:
            return 0.0
        return variance * total / len(self.spreads) * rounding.tail(total * total / squares)


def eager_variance(shapes: Iterable[Divergences]) -> float:
    """Variance of eager's errors of logits that its divergences at all shapes speak of."""
    seen = list(shapes)
    total = sum(sum(shape.spreads) for shape in seen)
    return max(0.0, sum(shape.eager for shape in seen)) / total if total else 0.0


def _divergence(known: torch.Tensor, logits: torch.Tensor) -> float:
    return float((known.exp() * (known - logits.log_softmax(dim=-1))).sum())
