"""What every mode states about itself, and the mode that changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from stages.core.errors import UserError

TRANSFORMS = ("none", "dynamo", "inductor", "inductor_autotune", "aot")
REPLAYS = ("none", "manual", "trees", "engine")
STABILITIES = ("public", "prototype", "private")


@dataclass(kw_only=True)
class BaseMode:
    """The claim that evidence confirms or refutes, and the configuration that a user copies.

    Raises UserError for a value outside its list.
    """

    name: str
    family: str = "torch"
    transform: str
    replay: str
    documented_at: str
    stability: str
    configuration: str

    replays: ClassVar[tuple[str, ...]] = REPLAYS  # what this class can do

    def __post_init__(self) -> None:
        """Check the claim's values."""
        for key, allowed in (("transform", self.transforms()), ("replay", self.replays), ("stability", STABILITIES)):
            if getattr(self, key) not in allowed:
                raise UserError(
                    f"mode.{key}", f"must be one of {', '.join(allowed)}", getattr(self, key), f"Fix conf/mode/{self.name}.yaml."
                )

    def transforms(self) -> tuple[str, ...]:
        """The transforms that this configuration can claim."""
        return TRANSFORMS

    def files(self) -> list[Path]:
        """No file's content counts as configuration."""
        return []

    def unavailable(self, device: str) -> str:
        """A mode that replays CUDA graphs needs a CUDA device."""
        return "needs CUDA: a CPU has no CUDA graphs" if self.replay != "none" and device != "cuda" else ""

    def transformed(self, function: Callable[..., Any], num_shapes: int) -> Callable[..., Any]:
        """The function itself."""
        return function

    def held(self, call: Callable[[], Any], pool: Any) -> Callable[[], Any]:
        """The call itself."""
        return call

    def before_step(self) -> None:
        """Nothing to mark."""

    def weights_changed(self) -> None:
        """Weights are read where they lie: nothing to load again."""

    def warmed_up(self) -> None:
        """Nothing changes once every planned shape has run."""

    def counts(self) -> Mapping[str, int]:
        """Nothing that torch's own counters do not say."""
        return {}

    def artifact(self) -> bytes | None:
        """torch's cache artifacts of this process (`torch.compiler.save_cache_artifacts`); None when there is nothing to save."""
        import torch

        saved = torch.compiler.save_cache_artifacts()
        return None if saved is None else saved[0]

    def load_artifact(self, content: bytes) -> bool:
        """Fill the caches from an artifact; False when torch could not read it."""
        import torch

        return torch.compiler.load_cache_artifacts(content) is not None
