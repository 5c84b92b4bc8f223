"""The path counters and the compiler's log, for a process that goes on without them: both can be taken out again.

A worker keeps its instruments until it ends; a program that is watched for a while must get its torch back as it was.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stages.instruments.compiler_log import LIMIT_LOGGER, CompilerLog
from stages.instruments.path_counters import PathCounters

_PATCHED = (
    ("torch.cuda.graphs", "CUDAGraph", ("capture_begin", "replay")),
    ("torch._inductor.cudagraph_trees", "CUDAGraphTreeManager", ("run_eager", "record_function", "execute_node", "run")),
    ("torch._dynamo.output_graph", "OutputGraph", ("call_user_compiler",)),
    ("torch._inductor.compile_fx", "", ("cudagraphify",)),
)
_LISTENED = ("recompiles", "graph_breaks", "cudagraphs")
_ABSENT = object()


@contextmanager
def counted(counters: PathCounters) -> Iterator[None]:
    """Install the counters; put back every attribute that they replace."""
    replaced = [(owner, name, vars(owner).get(name, _ABSENT)) for owner, name in _patched_attributes()]
    counters.install()
    try:
        yield
    finally:
        for owner, name, original in replaced:
            if original is not _ABSENT:
                setattr(owner, name, original)
            elif name in vars(owner):
                delattr(owner, name)


@contextmanager
def listened(log: CompilerLog) -> Iterator[None]:
    """Let the log hear torch's artifacts, whatever TORCH_LOGS says; put back torch's log state and its loggers.

    An artifact that the user did not turn on stays off stderr. `torch._logging._internal.log_state`, private; torch
    2.11 and 2.13.
    """
    internal: Any = importlib.import_module("torch._logging._internal")
    asked_for = set(internal.log_state.artifact_names)
    loggers = list(_artifact_loggers())
    before = [(logger, list(logger.handlers), logger.propagate, logger.level) for logger in loggers]
    internal.log_state.artifact_names.update(_LISTENED)
    for logger in loggers:
        logger.addHandler(log)
        logger.setLevel(logging.DEBUG)
        logger.propagate = logger.propagate and _artifact_of(logger.name) in asked_for
    limits = logging.getLogger(LIMIT_LOGGER)  # its warnings stay on stderr
    limits.addHandler(log)
    try:
        yield
    finally:
        limits.removeHandler(log)
        internal.log_state.artifact_names.intersection_update(asked_for)
        for logger, handlers, propagate, level in before:
            logger.handlers, logger.propagate = handlers, propagate
            logger.setLevel(level)


def _patched_attributes() -> Iterator[tuple[Any, str]]:
    for module, owner, names in _PATCHED:
        try:
            found: Any = importlib.import_module(module)
            found = getattr(found, owner) if owner else found
        except (ImportError, AttributeError):  # the counters list it as missing
            continue
        yield from ((found, name) for name in names)


def _artifact_loggers() -> Iterator[logging.Logger]:
    for name in list(logging.root.manager.loggerDict):
        if name.startswith("torch") and _artifact_of(name) in _LISTENED:
            yield logging.getLogger(name)


def _artifact_of(logger_name: str) -> str:
    return logger_name.rpartition(".__")[2]
