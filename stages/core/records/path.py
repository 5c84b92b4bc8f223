"""capture/<mode>.json: which path every step took, the profiled window, memory, and the verdict on the claim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from stages.core.records.base import Document, Record
from stages.core.records.profiled import KernelTime as KernelTime
from stages.core.records.profiled import Phase as Phase
from stages.core.records.profiled import ProfiledStep as ProfiledStep

Path = Literal["eager", "compiled", "replayed", "recorded", "recompiled", "captured", "fallback"]
EvidenceVerdict = Literal["confirmed", "refuted", "not_proven"]
FindingKind = Literal["recompile", "recompile_limit", "graph_break", "cudagraph_skip", "rerecording", "partition"]


def claimed_path(claim: Mapping[str, Any]) -> str:
    """The path that every steady step of a mode with this claim must take."""
    if claim.get("replay", "none") != "none":
        return "replayed"
    return "eager" if claim.get("transform", "none") == "none" else "compiled"


class PathRun(Document):
    """Consecutive steps that took the same path at the same padded size (run-length coded, in trace order)."""

    path: Path
    phase: Phase
    padded_size: int
    count: int


class Finding(Document):
    """Something that happened since the spawn and that a person should know, with torch's reason and user line."""

    kind: FindingKind
    reason: str
    num: int


class StepEvent(Document):
    """One step of the walk that left its claimed path, or in which torch said something; `step` counts from 0.

    `size`: active sequences or prompt tokens. `reasons`: what torch said in this very step.
    """

    step: int
    phase: Phase
    size: int
    padded_size: int
    path: Path
    reasons: list[str]
    adapter_id: int | None = None


class PathShare(Document):
    """What one path took at one shape: steps, tokens (real, without padding), host seconds with counters and a sync a step."""

    num_steps: int
    num_tokens: int
    wall_s: float


class ShapeCoverage(Document):
    """One padded shape of the walk: its paths, the compiled functions called (compile id -> calls), and graph replays."""

    phase: Phase
    padded_size: int
    paths: dict[Path, PathShare]
    compiled_calls: dict[str, int]
    num_replays: int


class ChurnWindow(Document):
    """Recordings, captures and recompiles in consecutive steps, and the host seconds of the steps that had any."""

    first_step: int
    num_steps: int
    num_recordings: int
    num_captures: int
    num_recompiles: int
    wall_s: float


class Churn(Document):
    """Whether recording, capturing and recompiling ended along the trace.

    `settled`: none in the second half of the walk; `settled_after_steps`: the first step with none to come.
    """

    verdict: Literal["settled", "not_settled"]
    settled_after_steps: int | None
    num_events: int
    events_per_1000_steps: float
    wall_s: float
    windows: list[ChurnWindow]


class MemorySample(Document):
    """Bytes before step `step` of the walk; on a CPU `reserved_bytes` is the resident set and the others are 0."""

    step: int
    allocated_bytes: int
    reserved_bytes: int
    graph_pool_bytes: int
    outside_allocator_bytes: int


class Evidence(Document):
    """The verdict on a mode's claim, with counts from run-time counters and the reasons a person needs.

    `counters`: what every counter gained during the walk. `findings`: graph breaks, recompiles, skips and the like since
    the spawn, also where they do not refute the claim. `events`: the steps off the path (the first 200).
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
    num_recompile_limit_hits: int = 0
    findings: list[Finding] = Field(default_factory=list)
    events: list[StepEvent] = Field(default_factory=list)


class Memory(Document):
    """Bytes of the worker alone on the device, after every planned shape ran (host memory on a CPU).

    `max_sequences` is computed; `checked_sequences` is how many of them could be allocated, with every shape run under
    the limit (None: not checked, `check` says why).
    """

    weights_bytes: int
    kv_cache_bytes: int
    peak_bytes: int
    reserved_bytes: int
    graph_pool_bytes: int
    outside_allocator_bytes: int
    max_sequences: int
    checked_sequences: int | None = None
    check: str = ""


class AdapterUse(Document):
    """Adapters of the walk: how many, how often the service switched, and the paths of the steps right after a switch."""

    num_adapters: int
    num_switches: int
    paths_after_switch: dict[Path, int]


class GraphBytes(Document):
    """What one captured shape (`decode/8`) added: to the shared private pools, and outside torch's allocator."""

    shape: str
    pool_bytes: int
    outside_allocator_bytes: int


class PathProof(Document):
    """What the capture stage found for one mode."""

    claim: dict[str, str]
    evidence: Evidence
    path_runs: list[PathRun]
    steps_walked: int
    steps_in_trace: int
    profile: list[ProfiledStep]
    memory: Memory
    shapes: list[ShapeCoverage] = Field(default_factory=list)
    churn: Churn | None = None
    memory_samples: list[MemorySample] = Field(default_factory=list)
    graphs: list[GraphBytes] = Field(default_factory=list)
    adapters: AdapterUse | None = None


class CaptureRecord(Record[PathProof]):
    """capture/<mode>.json."""
