"""What torch's compiler says in its logs: recompile reasons and limits, graph breaks, CUDA graph skips and partitions."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from stages.instruments.compiler_sentences import SENTENCES, kind_of

_ARTIFACTS = ("recompiles", "graph_breaks", "cudagraphs")
LIMIT_LOGGER = "torch._dynamo.convert_frame"  # warns once a function that reaches recompile_limit; torch 2.11 and 2.13
_LIMIT_WORDS = ("recompile_limit", "accumulated_cache_size_limit", "cache_size_limit")


@dataclass
class CompilerLog(logging.Handler):
    """Collects the log artifacts in process; `lines[artifact]` in order. Does not change the compile caches' key.

    `said` is the same as (kind, sentence), all artifacts in one order: its length before and after a step tells what
    torch said in that step.
    """

    lines: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in (*_ARTIFACTS, "recompile_limits")})
    said: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make a handler that takes every level."""
        logging.Handler.__init__(self, level=logging.DEBUG)

    __hash__ = object.__hash__

    def install(self) -> None:
        """Turn the artifacts on and listen to them; their text does not go to stderr, the warning about a limit does."""
        import torch._logging

        torch._logging.set_logs(  # type: ignore[attr-defined]
            recompiles=True, graph_breaks=True, cudagraphs=True
        )
        for name in list(logging.root.manager.loggerDict):
            if name.startswith("torch") and any(name.endswith(f".__{artifact}") for artifact in _ARTIFACTS):
                logger = logging.getLogger(name)
                logger.handlers, logger.propagate = [self], False
        logging.getLogger(LIMIT_LOGGER).addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line of one artifact (first 500 characters), and its sentence."""
        message = record.getMessage()
        artifact = self._artifact_of(record, message)
        if artifact is None:
            return
        self.lines[artifact].append(message[:500])
        kind = kind_of(artifact, message)
        if kind:
            self.said.append((kind, SENTENCES[kind](message)))

    def skips(self) -> list[str]:
        """Lines that say a CUDA graph was skipped."""
        return [line for line in self.lines["cudagraphs"] if "skipping" in line.lower()]

    def _artifact_of(self, record: logging.LogRecord, message: str) -> str | None:
        artifact = record.name.rpartition(".__")[2]
        if artifact in _ARTIFACTS:
            return artifact
        is_limit = record.name == LIMIT_LOGGER and any(f"hit config.{word}" in message for word in _LIMIT_WORDS)
        return "recompile_limits" if is_limit else None
