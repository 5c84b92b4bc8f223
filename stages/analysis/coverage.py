"""What each path took of the walked trace, what padding cost, which planned sizes nobody used, and which sizes to capture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stages.analysis import capture_sizes
from stages.core.records.path import GraphBytes, PathProof, Phase
from stages.core.records.plan import Plan
from stages.core.records.startup import Startup

BASELINE_PATHS = ("eager", "fallback")
"""Of a step that a mode which compiles or replays gave up: all of it, or part of it, ran as the baseline does."""


def coverage(proof: PathProof, plan: Plan) -> dict[str, Any]:
    """Shares by path (of steps, tokens, host seconds), the baseline's share, padding waste, sizes unused and passed; empty without shapes.

    `padding_waste` = 1 - tokens / padded tokens of a phase: a decode step of 5 at size 8 wastes 3 of 8 rows.
    """
    if not proof.shapes:
        return {}
    return {
        "shares": {unit: _shares(proof, unit) for unit in ("num_steps", "num_tokens", "wall_s")},
        "baseline_share": _baseline_share(proof),
        "padding_waste": {phase: waste for phase in _phases() if (waste := _padding_waste(proof, phase)) is not None},
        "unused_sizes": {phase: sizes for phase, sizes in _unused(proof, plan).items() if sizes},
        "past_the_largest": _past_the_largest(plan),
        "shapes": [shape.model_dump() for shape in proof.shapes],
    }


def advice(plan: Plan, step_us: Mapping[int, float], startup: Startup | None, graphs: Sequence[GraphBytes] = ()) -> dict[str, Any] | None:
    """The decode sizes to capture for this trace, from the measured times of the sizes that were; None without a choice.

    `startup_s_saved`: seconds of the first calls (the first cold start) of the sizes that it leaves out; `bytes_saved`:
    what their graphs added to the device's memory. None where it was not measured.
    """
    steps = decode_steps(plan)
    found = capture_sizes.fewest_close_sizes(steps, step_us)
    if found is None:
        return None
    dropped = [size for size in plan.capture_sizes if size not in found.capture_sizes]
    return {
        "capture_sizes": found.capture_sizes,
        "decode_s": found.decode_s,
        "planned_decode_s": capture_sizes.decode_s(steps, step_us, plan.capture_sizes),
        "dropped_sizes": dropped,
        "startup_s_saved": _startup_s(startup, dropped),
        "bytes_saved": _bytes(graphs, dropped),
        "vllm_option": capture_sizes.vllm_option(found.capture_sizes),
    }


def decode_steps(plan: Plan) -> dict[int, int]:
    """Steps of the whole trace by real batch size."""
    steps: Counter[int] = Counter()
    for run in plan.runs:
        if run.phase == "decode":
            steps[run.size] += run.count
    return dict(steps)


def _phases() -> tuple[Phase, ...]:
    return ("prefill", "decode")


def _shares(proof: PathProof, unit: str) -> dict[str, float]:
    taken: Counter[str] = Counter()
    for shape in proof.shapes:
        for path, share in shape.paths.items():
            taken[path] += getattr(share, unit)
    total = sum(taken.values())
    return {path: value / total for path, value in taken.items()} if total else {}


def _baseline_share(proof: PathProof) -> dict[str, float] | None:
    """What the mode did not take itself, by steps, tokens and host seconds; None for a claim of plain eager."""
    if proof.claim.get("transform") == "none" and proof.claim.get("replay") == "none":
        return None
    shares = {unit: _shares(proof, unit) for unit in ("num_steps", "num_tokens", "wall_s")}
    return {unit: sum(found.get(path, 0.0) for path in BASELINE_PATHS) for unit, found in shares.items()}


def _padding_waste(proof: PathProof, phase: str) -> float | None:
    shares = [(shape.padded_size, share) for shape in proof.shapes if shape.phase == phase for share in shape.paths.values()]
    padded = sum(size * share.num_steps for size, share in shares)
    return 1 - sum(share.num_tokens for _, share in shares) / padded if padded else None


def _unused(proof: PathProof, plan: Plan) -> dict[str, list[int]]:
    planned: dict[str, Iterable[int]] = {"prefill": plan.prompt_sizes, "decode": plan.capture_sizes}
    used = {(shape.phase, shape.padded_size) for shape in proof.shapes}
    return {phase: [size for size in sizes if (phase, size) not in used] for phase, sizes in planned.items()}


def _past_the_largest(plan: Plan) -> dict[str, int]:
    """Steps of the whole trace that no planned size holds: a service without a fallback could not run them."""
    largest: dict[str, int] = {"prefill": max(plan.prompt_sizes, default=0), "decode": max(plan.capture_sizes, default=0)}
    return {phase: sum(run.count for run in plan.runs if run.phase == phase and run.size > most) for phase, most in largest.items()}


def _bytes(graphs: Sequence[GraphBytes], sizes: Iterable[int]) -> int | None:
    held = {graph.shape: graph.pool_bytes + graph.outside_allocator_bytes for graph in graphs}
    return sum(held.get(f"decode/{size}", 0) for size in sizes) if held else None


def _startup_s(startup: Startup | None, sizes: Iterable[int]) -> float | None:
    cold = [start for start in startup.starts if start.cache == "cold"] if startup else []
    if not cold:
        return None
    return sum(sum(cold[0].calls_s.get(f"decode/{size}", [])) for size in sizes)
