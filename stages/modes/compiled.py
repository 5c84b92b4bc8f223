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
    """`torch.compile(function, backend=..., mode=..., dynamic=...)`.

    `dynamic`: False is one specialisation a shape, True one graph for all sizes (size 1 stays its own). `graph_partition`:
    None is torch's default; True or False are Inductor's option of that name.

    Raises UserError for pairs that torch accepts and ignores (`mode=` with another backend than Inductor), and for a
    claim that backend and compile mode do not keep.
    """

    replays: ClassVar[tuple[str, ...]] = ("none", "trees")

    backend: str = "inductor"
    compile_mode: str | None = None
    fullgraph: bool = False
    dynamic: bool = False
    graph_partition: bool | None = None

    def __post_init__(self) -> None:
        """Refuse flag pairs that would be ignored in silence."""
        if self.compile_mode and self.backend != "inductor":
            raise UserError(
                "mode.compile_mode", "is ignored by torch unless backend is inductor", f"backend={self.backend}", "Drop one of the two."
            )
        super().__post_init__()
        if self.compile_mode and self.compile_mode not in _COMPILE_MODES:
            raise UserError("mode.compile_mode", f"must be one of {', '.join(_COMPILE_MODES)}", self.compile_mode, "Take one of these.")
        self._check_replay()

    def _check_replay(self) -> None:
        asks_for_trees = self.compile_mode in _TREES or self.backend == "cudagraphs"
        if asks_for_trees != (self.replay == "trees"):
            rule = f"must be trees exactly with compile_mode {' or '.join(_TREES)}, or backend cudagraphs"
            raise UserError("mode.replay", rule, self.replay, "Fix the claim.")
        if self.graph_partition is not None and (self.backend != "inductor" or self.replay != "trees"):
            rule = "does something only with Inductor and CUDAGraph Trees"
            raise UserError("mode.graph_partition", rule, self.graph_partition, "Drop it.")

    def transforms(self) -> tuple[str, ...]:
        """What the backend and the compile mode do."""
        if self.backend == "inductor":
            return ("inductor_autotune",) if (self.compile_mode or "").startswith("max-autotune") else ("inductor",)
        return {"eager": ("dynamo",), "cudagraphs": ("aot",)}.get(self.backend, TRANSFORMS[1:])

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        """Compile it, one specialisation a shape; falling back to eager past the recompile limit is an error.

        The limit is one above the number of planned shapes. Without `fail_on_recompile_limit_hit` from the start torch
        would run every further shape eagerly, after one warning.
        """
        import torch

        forbid_silent_eager(num_shapes)
        return torch.compile(function, backend=self.backend, dynamic=self.dynamic, fullgraph=self.fullgraph, **self.compile_options())

    def compile_options(self) -> dict[str, Any]:
        """`mode=`, or the options it stands for with the partition option among them: torch takes only one of the two."""
        if self.graph_partition is None:
            return {"mode": self.compile_mode}
        from torch._inductor import list_mode_options

        return {"options": {**list_mode_options(self.compile_mode, self.dynamic), "graph_partition": self.graph_partition}}

    def before_step(self) -> None:
        """With Trees a step is a new generation: outputs of the step before may be overwritten."""
        if self.replay == "trees":
            import torch

            torch.compiler.cudagraph_mark_step_begin()


def forbid_silent_eager(num_shapes: int) -> None:
    """One specialisation more than there are shapes may be compiled; the next one raises instead of running eagerly."""
    import torch.compiler.config as compiler_config

    compiler_config.recompile_limit = num_shapes + 1
    compiler_config.fail_on_recompile_limit_hit = True
