"""torch.compile of a model's repeated layers, one compilation for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stages.core.errors import UserError
from stages.modes.compiled import Compiled, forbid_silent_eager


@dataclass(kw_only=True)
class CompiledRegions(Compiled):
    """`for layer in model.blocks: layer.compile(...)`: the rest of the step stays eager.

    Layers share their code, so a shape compiles once, unless something differs between them (an index that is used).
    """

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        """Compile the layers in place; the function itself runs eagerly. Raises UserError for a model without `blocks`."""
        blocks = getattr(getattr(function, "__self__", None), "blocks", None)
        if not blocks:
            raise UserError("mode", "needs a model with its layers in `blocks`", self.name, "Take a mode that compiles the whole step.")
        forbid_silent_eager(num_shapes)
        for block in blocks:
            block.compile(backend=self.backend, dynamic=self.dynamic, fullgraph=self.fullgraph, **self.compile_options())
        return function
