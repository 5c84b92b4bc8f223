"""capture/<mode>.json: which path every step took, the profiled window, memory, and the verdict on the claim."""

from __future__ import annotations

from typing import Literal

from stages.core.records.base import Document, Record

_AROUND_ATTENTION = ("triton_poi_", "triton_red_", "triton_per_", "aten::scaled_dot_product_attention")

Path = Literal["eager", "compiled", "replayed", "recorded", "recompiled", "captured", "fallback"]
Phase = Literal["prefill", "decode"]
EvidenceVerdict = Literal["confirmed", "refuted", "not_proven"]


class PathRun(Document):
    """Consecutive steps that took the same path at the same padded size (run-length coded, in trace order)."""

    path: Path
    phase: Phase
    padded_size: int
    count: int


class Evidence(Document):
    """The verdict on a mode's claim, with counts from run-time counters and the reasons a person needs.

    `counters`: what every counter gained during the walk.
    """

    verdict: EvidenceVerdict
    reasons: list[str]
    num_steps: int
    num_compiled_calls: int
    num_graph_breaks: int
    num_recompiles: int
    num_captures: int
    num_recordings: int
    num_replays: int
    path_counts: dict[str, int]
    counters: dict[str, int]
    sources: list[str]


class KernelTime(Document):
    """One kernel (operator on a CPU) of a profiled step: its total time and launches a step."""

    name: str
    total_us: float
    count: float


class ProfiledStep(Document):
    """Profile of one shape, averaged over the profiled calls of one session.

    `busy_us` is the union of device intervals (operator self time on a CPU); the launch fields are zero on a CPU.
    Host times (`host_launch_us`, `host_python_us`, `host_wait_us`, `host_compile_us`) are exclusive shares of the
    profiled wall time in which the device was idle.
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

    @property
    def attention_operators(self) -> list[str]:
        """The kernels that compute attention.

        Inductor names its fused pointwise kernels after the operators around them, and a CPU shows the dispatcher too.
        """
        return [name for name in self.attention_kernels if not name.startswith(_AROUND_ATTENTION)]


class Memory(Document):
    """Bytes of the worker alone on the device, after every planned shape ran (host memory on a CPU)."""

    weights_bytes: int
    kv_cache_bytes: int
    peak_bytes: int
    reserved_bytes: int
    graph_pool_bytes: int
    outside_allocator_bytes: int
    max_sequences: int


class PathProof(Document):
    """What the capture stage found for one mode."""

    claim: dict[str, str]
    evidence: Evidence
    path_runs: list[PathRun]
    steps_walked: int
    steps_in_trace: int
    profile: list[ProfiledStep]
    memory: Memory


class CaptureRecord(Record[PathProof]):
    """capture/<mode>.json."""
