"""What one profiled window says about a step."""

from __future__ import annotations

from typing import Literal

from stages.core.records.base import Document

_AROUND_ATTENTION = ("triton_poi_", "triton_red_", "triton_per_", "aten::scaled_dot_product_attention")
_MADE_OF_OTHERS = "aten::_scaled_dot_product_attention_math"

Phase = Literal["prefill", "decode"]


class KernelTime(Document):
    """One kernel (operator on a CPU) of a profiled step: its total time and launches a step."""

    name: str
    total_us: float
    count: float


class ReplayCost(Document):
    """Host time of one step that replays, us: all but the waiting for the device, each moment once. Profiled, so dilated.

    `guards_us`: Dynamo's cache lookup. `wrapper_us`: the compiled function's wrappers around the call of its graph.
    `tree_checks_us`: that call without copies and launches, which with CUDAGraph Trees is their bookkeeping.
    `input_copies_us`: copies of inputs into the graph's own memory. `other_us`: Python around all of it.
    """

    guards_us: float
    wrapper_us: float
    tree_checks_us: float
    input_copies_us: float
    graph_launch_us: float
    other_us: float


class ProfiledStep(Document):
    """Profile of one shape, averaged over the profiled calls of one session.

    `busy_us` is the union of device intervals (operator self time on a CPU); the launch fields are zero on a CPU.
    Host times (`host_launch_us`, `host_python_us`, `host_wait_us`, `host_compile_us`) are exclusive shares of the
    profiled wall time in which the device was idle. `share_outside_regions`: of the work's time, what ran outside every
    compiled function (None: not known). `graph_kernels_range`: fewest and most kernels of graph launches in one call.
    `compiled_regions_per_call`: compiled functions that a call entered (torch's marks). `kernels_us`: sum of all kernels'
    times, of which `top_kernels` has the largest. `replay_cost`: None for a step without a graph launch.
    """

    phase: Phase
    size: int
    num_calls: int
    wall_us: float
    busy_us: float
    host_launch_us: float
    host_python_us: float
    host_wait_us: float
    host_compile_us: float
    kernels_per_call: float
    graph_launches_per_call: float
    graph_kernels_per_call: float
    individual_kernels_per_call: float
    unattributed_kernels_per_call: float
    attention_kernels: list[str]
    top_kernels: list[KernelTime]
    graph_kernels_range: tuple[int, int] | None = None
    share_outside_regions: float | None = None
    compiled_regions_per_call: float | None = None
    kernels_us: float | None = None
    replay_cost: ReplayCost | None = None

    @property
    def attention_operators(self) -> list[str]:
        """The fused kernels that compute attention; empty where it is made of products and a softmax (SDPA's math backend).

        Inductor names its fused pointwise kernels after the operators around them, and a CPU shows the dispatcher too.
        """
        return [name for name in self.attention_kernels if not name.startswith((*_AROUND_ATTENTION, _MADE_OF_OTHERS))]
