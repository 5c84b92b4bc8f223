"""One row copied in many tensors by one call (`torch._foreach_copy_`, private; 2.11 and 2.13).

A loop of `copy_` over the caches of all layers takes the host longer than a replayed step.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class RowCopies:
    """Tensors of one type and device [n, ...], whose rows are moved together."""

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        """The tensors must keep their storage."""
        self._tensors = tensors
        self._rows: dict[int, list[Tensor]] = {}

    def copy(self, source: int, target: int) -> None:
        """Copy row `source` over row `target` in every tensor."""
        torch._foreach_copy_(self._row(target), self._row(source))

    def _row(self, index: int) -> list[Tensor]:
        if index not in self._rows:
            self._rows[index] = [tensor[index] for tensor in self._tensors]
        return self._rows[index]
