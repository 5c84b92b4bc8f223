"""What torch's compiler says in its logs: recompile reasons, graph breaks, CUDA graph skips."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

_ARTIFACTS = ("recompiles", "graph_breaks", "cudagraphs")


@dataclass
class CompilerLog(logging.Handler):
    """Collects the log artifacts in process; `lines[artifact]` in order. Does not change the compile caches' key."""

    lines: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in _ARTIFACTS})

    def __post_init__(self) -> None:
        """Make a handler that takes every level."""
        logging.Handler.__init__(self, level=logging.DEBUG)

    __hash__ = object.__hash__

    def install(self) -> None:
        """Turn the artifacts on and listen to them; their text does not go to stderr."""
        import torch._logging

        torch._logging.set_logs(  # type: ignore[attr-defined]
            recompiles=True, graph_breaks=True, cudagraphs=True
        )
        for name in list(logging.root.manager.loggerDict):
            if name.startswith("torch") and any(name.endswith(f".__{artifact}") for artifact in _ARTIFACTS):
                logger = logging.getLogger(name)
                logger.handlers, logger.propagate = [self], False

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line of one artifact (first 500 characters)."""
        artifact = record.name.rsplit(".__", 1)[-1]
        if artifact in self.lines:
            self.lines[artifact].append(record.getMessage()[:500])

    def skips(self) -> list[str]:
        """Lines that say a CUDA graph was skipped."""
        return [line for line in self.lines["cudagraphs"] if "skipping" in line.lower()]
