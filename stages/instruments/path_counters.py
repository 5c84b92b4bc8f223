"""Counters of what really ran: compiled calls, compilations, captures, recordings, replays.

Class-level wrappers, installed before the first compilation, in proof processes and under `watch` only; what they cost a
step: `benchmarks/ledger.py`. Names checked on torch 2.11 and 2.13; a missing one is listed in `missing`, and evidence
that would need it becomes `not_proven`.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stages.instruments.compiled_regions import PACKAGE_MARK
from stages.instruments.replacing import Replacements

_COUNTED = (
    ("torch.cuda.graphs", "CUDAGraph", "capture_begin", "capture"),
    ("torch.cuda.graphs", "CUDAGraph", "replay", "replay"),
    ("torch._inductor.cudagraph_trees", "CUDAGraphTreeManager", "run_eager", "tree_warmup"),
    ("torch._inductor.cudagraph_trees", "CUDAGraphTreeManager", "record_function", "tree_record"),
    ("torch._inductor.cudagraph_trees", "CUDAGraphTreeManager", "execute_node", "tree_replay"),
    ("torch._inductor.cudagraph_trees", "CUDAGraphTreeManager", "run", "tree_run"),
)
# it captures an empty graph to keep its pool alive: no capture of the user's, and nothing replays it
_NO_CAPTURE = ("torch._inductor.cudagraph_trees", "CUDAGraphTreeManager", "__init__", "capture")


@dataclass
class PathCounters:
    """Counts since the process began; `snapshot()` before and after a step gives what the step did.

    `compiled_call` counts calls of compiled functions, `tree_call` those of them that went through CUDAGraph Trees.
    """

    counts: Counter[str] = field(default_factory=Counter)
    backends: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    _inside: set[str] = field(default_factory=set)
    _replaced: Replacements = field(default_factory=Replacements)
    _also: list[Callable[[], Mapping[str, int]]] = field(default_factory=list)

    def install(self) -> None:
        """Wrap every counted name that this torch has."""
        self.missing.clear()
        for module, owner, method, counter in _COUNTED:
            self._count_method(module, owner, method, counter)
        self._count_method(*_NO_CAPTURE, each=0)
        self._count_compiled_calls()
        self._count_cudagraphify()

    def remove(self) -> None:
        """Put back every attribute that `install` replaced; functions compiled meanwhile go on counting."""
        self._replaced.restore()

    def also_count(self, counts: Callable[[], Mapping[str, int]]) -> None:
        """Let snapshots hold what a mode counts itself, too."""
        self._also.append(counts)

    def count_packages(self) -> None:
        """Count calls of AOTInductor packages, and mark each one for a profile (`compiled_regions`)."""
        try:
            from torch.export.pt2_archive._package import AOTICompiledModel
            from torch.profiler import record_function
        except ImportError:
            self.missing.append("torch.export.pt2_archive._package.AOTICompiledModel")
            return
        original: Callable[..., Any] = AOTICompiledModel.__call__

        def counted(this: Any, *arguments: Any, **keywords: Any) -> Any:
            self.counts["package_call"] += 1
            with record_function(PACKAGE_MARK):
                return original(this, *arguments, **keywords)

        self._replaced.replace(AOTICompiledModel, "__call__", counted)

    def snapshot(self) -> Counter[str]:
        """The counts now, with Dynamo's own counters of graphs and graph breaks."""
        from torch._dynamo.utils import counters

        now = Counter(self.counts)
        now["compilation"] = self.counts["compilation"]
        now["graph_break"] = sum(counters["graph_break"].values())
        now["cudagraph_skip"] = counters["inductor"]["cudagraph_skips"]
        for counts in self._also:
            now.update(counts())
        return now

    def _count_method(self, module: str, owner: str, method: str, counter: str, each: int = 1) -> None:
        """Add `each` to the counter at a call, and nothing at what the call itself makes count for it."""
        try:
            cls = getattr(importlib.import_module(module), owner)
            original: Callable[..., Any] = getattr(cls, method)
        except (ImportError, AttributeError):
            self.missing.append(f"{module}.{owner}.{method}")
            return

        def counted(this: Any, *arguments: Any, **keywords: Any) -> Any:
            if counter in self._inside:  # Trees' `run` calls itself when a generation ends
                return original(this, *arguments, **keywords)
            self.counts[counter] += each
            self._inside.add(counter)
            try:
                return original(this, *arguments, **keywords)
            finally:
                self._inside.discard(counter)

        self._replaced.replace(cls, method, counted)

    def _count_cudagraphify(self) -> None:
        module = importlib.import_module("torch._inductor.compile_fx")
        original = getattr(module, "cudagraphify", None)
        if original is None:
            self.missing.append("torch._inductor.compile_fx.cudagraphify")
            return

        def counted(*arguments: Any, **keywords: Any) -> Any:
            self.counts["cudagraphify"] += 1
            return original(*arguments, **keywords)

        self._replaced.replace(module, "cudagraphify", counted)

    def _count_compiled_calls(self) -> None:
        try:
            from torch._dynamo.output_graph import OutputGraph

            original = OutputGraph.call_user_compiler
        except (ImportError, AttributeError):
            self.missing.append("torch._dynamo.output_graph.OutputGraph.call_user_compiler")
            return

        def call_user_compiler(this: Any, *arguments: Any, **keywords: Any) -> Any:
            return self._counting(original(this, *arguments, **keywords), this)

        self._replaced.replace(OutputGraph, "call_user_compiler", call_user_compiler)

    def _counting(self, compiled: Callable[..., Any], output_graph: Any) -> Callable[..., Any]:
        from torch._guards import CompileContext

        compile_id = str(CompileContext.current_compile_id())
        self.counts["compilation"] += 1
        self.backends[compile_id] = _backend_name(getattr(output_graph, "compiler_fn", None))
        key = f"compiled_call:{compile_id}"

        def counted(*arguments: Any) -> Any:
            self.counts["compiled_call"] += 1
            self.counts[key] += 1
            runs = self.counts["tree_run"]
            result = compiled(*arguments)
            self.counts["tree_call"] += self.counts["tree_run"] > runs
            return result

        return counted


def _backend_name(compiler: Any) -> str:
    for name in ("_compiler_name", "compiler_name", "__name__"):
        if isinstance(getattr(compiler, name, None), str):
            return str(getattr(compiler, name))
    return type(compiler).__name__
