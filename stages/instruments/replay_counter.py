"""The only instrument that a timed process of a replaying mode carries: one number, one more a replay.

Says that what was timed was replayed; what it costs: `benchmarks/ledger.py`. `torch.cuda.CUDAGraph.replay` is public and
what CUDAGraph Trees calls too (torch 2.11 and 2.13).
"""

from __future__ import annotations

from typing import Any

from stages.instruments.replacing import Replacements


class ReplayCounter:
    """`num`: replays in this process since `install`."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self.num = 0
        self._replaced = Replacements()

    def install(self) -> None:
        """Count every replay, whoever captured the graph."""
        import torch

        original = torch.cuda.CUDAGraph.replay

        def replay(graph: Any) -> None:
            self.num += 1
            original(graph)

        self._replaced.replace(torch.cuda.CUDAGraph, "replay", replay)

    def remove(self) -> None:
        """Put torch's method back."""
        self._replaced.restore()
