"""Which instruments a worker carries: as few as what it is asked for needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def instruments_for(mode: Mapping[str, Any], proof: bool) -> dict[str, Any]:
    """Compile phases for modes that compile (eager must not pay for importing Dynamo), a counter of replays where they replay.

    The ledger's counters and the compiler's log are for proof alone: nothing that is timed carries them.
    """
    from stages.instruments.compile_phases import CompilePhases

    instruments: dict[str, Any] = {"phases": CompilePhases()}
    if mode["transform"] != "none":
        instruments["phases"].install()
    if proof:
        from stages.instruments.compiler_log import CompilerLog
        from stages.instruments.path_counters import PathCounters

        instruments.update(counters=PathCounters(), log=CompilerLog())
        instruments["counters"].install()
        instruments["log"].install()
        if mode["replay"] != "none":
            from stages.instruments.graph_memory import GraphMemory

            instruments["graph_memory"] = GraphMemory()
    elif mode["replay"] != "none":
        from stages.instruments.replay_counter import ReplayCounter

        instruments["replays"] = ReplayCounter()
        instruments["replays"].install()
    return instruments


def mode_for(node: Mapping[str, Any], instruments: Mapping[str, Any]) -> Any:
    """The mode; where a proof is asked for, what it counts itself is part of it."""
    from stages.core.build import build

    mode = build(node, "mode")
    if "counters" in instruments:
        instruments["counters"].also_count(mode.counts)
        if mode.transform == "aot":
            instruments["counters"].count_packages()
    return mode
