"""What each captured shape adds to the device's memory: the graphs' private pools, and what torch's allocator does not see.

The pool is shared and the largest shape is captured first, so a smaller one adds what does not fit into the blocks that it
reuses. Bytes outside the allocator (the graph's executable) are counted from before the capture to after the first replay;
the driver hands them out in steps of 2 MiB, so one small graph may show nothing.
"""

from __future__ import annotations

from typing import Any

from stages.instruments import memory


class GraphMemory:
    """`rows`: a `GraphBytes` document a shape, in order of capture."""

    def __init__(self) -> None:
        """Nothing is captured yet."""
        self.rows: list[dict[str, Any]] = []
        self._before = (0, 0)

    def begin(self) -> None:
        """The shape is warmed up: what is loaded or compiled for it is there; its capture comes next."""
        self._before = (memory.graph_pool_bytes(), memory.outside_allocator_bytes())

    def end(self, shape: str) -> None:
        """The shape has been captured and replayed."""
        pool_bytes, outside_bytes = self._before
        gained = {
            "pool_bytes": max(0, memory.graph_pool_bytes() - pool_bytes),
            "outside_allocator_bytes": max(0, memory.outside_allocator_bytes() - outside_bytes),
        }
        self.rows.append({"shape": shape, **gained})
