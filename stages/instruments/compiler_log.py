"""What torch's compiler says in its logs: recompile reasons and limits, graph breaks, CUDA graph skips and partitions."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

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
    _asked_for: set[str] = field(default_factory=set)
    _before: list[tuple[logging.Logger, list[logging.Handler], bool, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make a handler that takes every level."""
        logging.Handler.__init__(self, level=logging.DEBUG)

    __hash__ = object.__hash__

    def install(self) -> None:
        """Hear the artifacts of the modules imported so far, whatever TORCH_LOGS says.

        An artifact that the user did not turn on stays off stderr; the warning about a limit goes there as ever.
        """
        names = _log_state().artifact_names
        self._asked_for = set(names)
        names.update(_ARTIFACTS)
        for logger in _artifact_loggers():
            self._before.append((logger, list(logger.handlers), logger.propagate, logger.level))
            logger.addHandler(self)
            logger.setLevel(logging.DEBUG)
            logger.propagate = logger.propagate and _artifact_of(logger.name) in self._asked_for
        logging.getLogger(LIMIT_LOGGER).addHandler(self)

    def remove(self) -> None:
        """Put back torch's log state and its loggers."""
        logging.getLogger(LIMIT_LOGGER).removeHandler(self)
        _log_state().artifact_names.intersection_update(self._asked_for)
        while self._before:
            logger, handlers, propagate, level = self._before.pop()
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line of one artifact (first 500 characters), and its sentence."""
        message = record.getMessage()
        artifact = self._kept_as(record, message)
        if artifact is None:
            return
        self.lines[artifact].append(message[:500])
        kind = kind_of(artifact, message)
        if kind:
            self.said.append((kind, SENTENCES[kind](message)))

    def skips(self) -> list[str]:
        """Lines that say a CUDA graph was skipped."""
        return [line for line in self.lines["cudagraphs"] if "skipping" in line.lower()]

    def _kept_as(self, record: logging.LogRecord, message: str) -> str | None:
        artifact = _artifact_of(record.name)
        if artifact in _ARTIFACTS:
            return artifact
        is_limit = record.name == LIMIT_LOGGER and any(f"hit config.{word}" in message for word in _LIMIT_WORDS)
        return "recompile_limits" if is_limit else None


def _log_state() -> Any:
    """Private; torch 2.11 and 2.13."""
    return importlib.import_module("torch._logging._internal").log_state


def _artifact_loggers() -> Iterator[logging.Logger]:
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("torch") and _artifact_of(name) in _ARTIFACTS:
            yield logging.getLogger(name)


def _artifact_of(logger_name: str) -> str:
    return logger_name.rpartition(".__")[2]
