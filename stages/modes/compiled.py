"""torch.compile, with or without its own CUDA graphs (CUDAGraph Trees)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from stages.core.errors import UserError
from stages.modes.base import TRANSFORMS, BaseMode

_TREES = ("reduce-overhead", "max-autotune")
_COMPILE_MODES = ("default", "max-autotune-no-cudagraphs", *_TREES)


@dataclass(kw_only=True)
class Compiled(BaseMode):
    """`torch.compile(function, backend=..., mode=..., dynamic=False)`.

    Raises UserError for pairs that torch accepts and ignores (`mode=` with another backend than Inductor), and for a
    claim that backend and compile mode do not keep.
    """

    replays: ClassVar[tuple[str, ...]] = ("none", "trees")

    backend: str = "inductor"
    compile_mode: str | None = None
    fullgraph: bool = False

    def __post_init__(self) -> None:
        """Refuse flag pairs that would be ignored in silence."""
        super().__post_init__()
        if self.compile_mode and self.backend != "inductor":
            raise UserError(
                "mode.compile_mode", "is ignored by torch unless backend is inductor", f"backend={self.backend}", "Drop one of the two."
            )
        if self.compile_mode and self.compile_mode not in _COMPILE_MODES:
            raise UserError("mode.compile_mode", f"must be one of {', '.join(_COMPILE_MODES)}", self.compile_mode, "Take one of these.")
        asks_for_trees = self.compile_mode in _TREES
        if asks_for_trees != (self.replay == "trees"):
            raise UserError("mode.replay", f"must be trees exactly with compile_mode {' or '.join(_TREES)}", self.replay, "Fix the claim.")

    def transforms(self) -> tuple[str, ...]:
        """What the backend and the compile mode do."""
        if self.backend == "inductor":
            return ("inductor_autotune",) if (self.compile_mode or "").startswith("max-autotune") else ("inductor",)
        return ("dynamo",) if self.backend == "eager" else TRANSFORMS[1:]

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        """Compile it, one specialisation a shape; falling back to eager past the recompile limit is an error.

        The limit is one above the number of planned shapes. Without `fail_on_recompile_limit_hit` from the start torch
        would run every further shape eagerly, after one warning.
        """
        import torch
        import torch.compiler.config as compiler_config

        compiler_config.recompile_limit = num_shapes + 1
        compiler_config.fail_on_recompile_limit_hit = True
        return torch.compile(function, backend=self.backend, mode=self.compile_mode, dynamic=False, fullgraph=self.fullgraph)

    def before_step(self) -> None:
        """With Trees a step is a new generation: outputs of the step before may be overwritten."""
        if self.replay == "trees":
            import torch

            torch.compiler.cudagraph_mark_step_begin()
