"""CUDA graphs captured by us, of eager or of compiled kernels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from stages.modes.compiled import Compiled
from stages.modes.eager import Eager


class ManualCapture:
    """Capture a warmed-up call once, replay it ever after; all captures of a worker share one memory pool.

    Right only because replays never overlap and outputs are consumed before the next replay. Capture the largest
    shape first, so that smaller ones reuse its blocks.
    """

    replays: ClassVar[tuple[str, ...]] = ("manual",)

    def held(self, call: Callable[[], Any], pool: Any) -> Callable[[], Any]:
        """Capture `call` on its static inputs; the result replays and returns the static outputs.

        Raises RuntimeError (CUDA) when the call synchronises or allocates outside the pool.
        """
        import torch

        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            outputs = call()

        def replay() -> Any:
            graph.replay()
            return outputs

        return replay


@dataclass(kw_only=True)
class CapturedEager(ManualCapture, Eager):
    """A CUDA graph of eager kernels."""

    replay: str = "manual"


@dataclass(kw_only=True)
class CapturedCompiled(ManualCapture, Compiled):
    """A CUDA graph of compiled kernels (torch.compile inside, our capture outside)."""

    replay: str = "manual"
