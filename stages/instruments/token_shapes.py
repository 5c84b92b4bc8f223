"""The shapes of token ids that a program's steps had: compiled calls, eager embeddings, replays of what was captured.

A compiled function's ids are the placeholder that its graph looks up in the embedding with the most rows, found when it is
compiled; where there is none, its integer input of most elements. A replay counts as the calls that its capture saw.
Names checked on torch 2.11 and 2.13: `OutputGraph.call_user_compiler` (private), `CUDAGraph`, `nn.Embedding.forward`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from stages.instruments.replacing import Replacements


class Seen(NamedTuple):
    """One look at token ids: when (monotonic s), sequences, tokens a sequence, rows of the table (0: not known)."""

    at_s: float
    num_sequences: int
    num_tokens: int
    num_rows: int


class TokenShapes:
    """`seen`, in order. `missing`: torch's names that are not there, whose calls are therefore not seen."""

    def __init__(self) -> None:
        """Nothing is seen yet."""
        self.seen: list[Seen] = []
        self.missing: list[str] = []
        self._replaced = Replacements()
        self._starts: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
        self._captures: WeakKeyDictionary[Any, list[Seen]] = WeakKeyDictionary()
        self._in_compiled = False

    def install(self) -> None:
        """Look on until `remove`."""
        self._watch_compiled_calls()
        self._watch_embeddings()
        self._watch_graphs()

    def remove(self) -> None:
        """Put torch's methods back; functions compiled meanwhile are seen no more."""
        self._replaced.restore()

    def steps(self) -> list[Seen]:
        """One look a step: those at the table with the most rows (a step may look up positions too)."""
        most = max((one.num_rows for one in self.seen), default=0)
        return [one for one in self.seen if one.num_rows in (0, most)]

    def _note(self, shape: Iterable[int], num_rows: int) -> None:
        sizes = [int(size) for size in shape]
        if sizes:
            num_tokens = 1
            for size in sizes[1:]:
                num_tokens *= size
            self.seen.append(Seen(time.monotonic(), sizes[0], num_tokens, num_rows))

    def _watch_compiled_calls(self) -> None:
        try:
            from torch._dynamo.output_graph import OutputGraph

            original = OutputGraph.call_user_compiler
        except (ImportError, AttributeError):
            self.missing.append("torch._dynamo.output_graph.OutputGraph.call_user_compiler")
            return

        def call_user_compiler(this: Any, module: Any, *arguments: Any, **keywords: Any) -> Any:
            return self._looking(original(this, module, *arguments, **keywords), _ids_of(module))

        self._replaced.replace(OutputGraph, "call_user_compiler", call_user_compiler)

    def _looking(self, compiled: Callable[..., Any], found: tuple[int, int] | None) -> Callable[..., Any]:
        if found is None:
            return compiled
        index, num_rows = found

        def looked_at(*arguments: Any) -> Any:
            if self._replaced.active:
                self._note(arguments[index].shape, num_rows)
            before, self._in_compiled = self._in_compiled, True
            try:
                return compiled(*arguments)
            finally:
                self._in_compiled = before

        return looked_at

    def _watch_embeddings(self) -> None:
        import torch

        original = torch.nn.Embedding.forward

        def forward(module: Any, ids: Any) -> Any:
            if not torch.compiler.is_compiling():
                self._see_embedding(ids, module.num_embeddings)
            return original(module, ids)

        forward._torchdynamo_inline = original  # type: ignore[attr-defined] # Dynamo traces that: no guard on this wrapper
        self._replaced.replace(torch.nn.Embedding, "forward", forward)

    def _see_embedding(self, ids: Any, num_rows: int) -> None:
        if not self._in_compiled:  # the backend `eager` runs the module itself
            self._note(ids.shape, num_rows)

    def _watch_graphs(self) -> None:
        import torch

        graph = torch.cuda.CUDAGraph
        begin, end, replay = graph.capture_begin, graph.capture_end, graph.replay

        def capture_begin(this: Any, *arguments: Any, **keywords: Any) -> Any:
            self._starts[this] = len(self.seen)
            return begin(this, *arguments, **keywords)

        def capture_end(this: Any, *arguments: Any, **keywords: Any) -> Any:
            start = self._starts.pop(this, len(self.seen))
            self._captures[this], self.seen[start:] = self.seen[start:], []  # a capture computes nothing
            return end(this, *arguments, **keywords)

        def replayed(this: Any) -> Any:
            if not self._in_compiled:  # Trees replay inside a compiled call, which was seen
                for one in self._captures.get(this, []):
                    self.seen.append(one._replace(at_s=time.monotonic()))
            return replay(this)

        for name, function in (("capture_begin", capture_begin), ("capture_end", capture_end), ("replay", replayed)):
            self._replaced.replace(graph, name, function)


def _ids_of(module: Any) -> tuple[int, int] | None:
    """Index of the placeholder that holds token ids, and rows of the table (0: no table, the largest integer input)."""
    nodes = list(module.graph.nodes)
    placeholders = [node for node in nodes if node.op == "placeholder"]
    looked_up = [(node, _origin(node.args[0])) for node in nodes if _is_embedding(node)]
    tables = [(_rows(node.args[1]), placeholders.index(origin)) for node, origin in looked_up if origin in placeholders]
    if tables:
        num_rows, index = max(tables)
        return index, num_rows
    integers = [(_numel(node), -index) for index, node in enumerate(placeholders) if _numel(node)]
    return (-max(integers)[1], 0) if integers else None


def _is_embedding(node: Any) -> bool:
    return node.op == "call_function" and getattr(node.target, "__name__", "") == "embedding"


def _origin(node: Any) -> Any:
    """The placeholder that a chain of views starts from."""
    while getattr(node, "op", "") != "placeholder" and getattr(node, "args", ()):
        node = node.args[0]
    return node


def _rows(node: Any) -> int:
    value = node.meta.get("example_value")
    return int(value.shape[0]) if value is not None else 0


def _numel(node: Any) -> int:
    """Elements of an integer input that is no parameter or buffer; 0 otherwise."""
    value = node.meta.get("example_value")
    is_ids = hasattr(value, "dtype") and not value.dtype.is_floating_point and "self" not in node.name and value.dim()
    return int(value.numel()) if is_ids else 0
