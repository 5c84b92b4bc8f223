"""The verdict on a mode's claim: which rows of evidence it must satisfy, and the sentence for each that it does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from stages.core.records.path import Evidence, EvidenceVerdict, PathRun, ProfiledStep

EXPECTED_BACKEND = {"dynamo": "eager", "inductor": "inductor", "inductor_autotune": "inductor"}
MAX_INDIVIDUAL_KERNELS = 4  # input copies, RNG fills, an output clone: what a replay may leave outside


def judge(
    claim: dict[str, str], walked: dict[str, Any], path_runs: Sequence[PathRun], profile: Sequence[ProfiledStep], device: str
) -> Evidence:
    """`confirmed` when every step took the claimed path and the profile agrees; `refuted` with reasons when one did not.

    `not_proven` when a counter that the verdict needs does not exist in this torch, or the profile has kernels that
    belong to no launch.
    """
    paths = Counter[str]()
    for run in path_runs:
        paths[run.path] += run.count
    expected = expected_path(claim)
    unproven = _missing(claim, walked) + _unattributed(profile)
    refuted = _off_path(paths, expected, claim, walked) + _wrong_backend(claim, walked)
    if device == "cuda":
        refuted += _launches_disagree(claim, profile)
    verdict: EvidenceVerdict = "refuted" if refuted else "not_proven" if unproven else "confirmed"
    counts = walked["counts"]
    return Evidence(
        verdict=verdict,
        reasons=refuted + unproven or [_confirmation(paths, expected, walked)],
        num_steps=sum(paths.values()),
        num_compiled_calls=counts.get("compiled_call", 0),
        num_graph_breaks=walked["since_spawn"].get("graph_break", 0),
        num_recompiles=counts.get("compilation", 0),
        num_captures=walked["since_spawn"].get("capture", 0),
        num_recordings=walked["since_spawn"].get("tree_record", 0),
        num_replays=counts.get("replay", 0),
        path_counts=dict(paths),
        counters=counts,
        sources=["class-level counters", "compiler log artifacts", "profiled window"],
    )


def expected_path(claim: dict[str, str]) -> str:
    """The path that every steady step of a claim must take."""
    if claim["replay"] != "none":
        return "replayed"
    return "eager" if claim["transform"] == "none" else "compiled"


def _missing(claim: dict[str, str], walked: dict[str, Any]) -> list[str]:
    needed = {"manual": ("CUDAGraph.",), "trees": ("CUDAGraph.", "CUDAGraphTreeManager.")}.get(claim["replay"], ())
    if claim["transform"] != "none":
        needed = (*needed, "call_user_compiler")
    gone = [name for name in walked["missing"] if any(part in name for part in needed)]
    return [f"this torch has no {name}: its calls cannot be counted" for name in gone]


def _unattributed(profile: Sequence[ProfiledStep]) -> list[str]:
    loose = [step for step in profile if step.unattributed_kernels_per_call > 0]
    return [f"profile of {s.phase}/{s.size}: {s.unattributed_kernels_per_call:.1f} kernels a call belong to no launch" for s in loose]


def _off_path(paths: Counter[str], expected: str, claim: dict[str, str], walked: dict[str, Any]) -> list[str]:
    total, right = sum(paths.values()), paths[expected]
    if total == right and total > 0:
        return []
    others = ", ".join(f"{count} {path}" for path, count in paths.items() if path != expected) or "no step ran"
    asked = f"{claim['transform']} kernels, replay {claim['replay']}"
    because = f"; torch says: {walked['skips'][0]}" if walked["skips"] else ""
    return [f"asked for {asked}; {right} of {total} steps {expected} ({others}){because}"]


def _wrong_backend(claim: dict[str, str], walked: dict[str, Any]) -> list[str]:
    backends = set(walked["backends"].values())
    expected = EXPECTED_BACKEND.get(claim["transform"])
    if expected is None:
        return [f"compiled by {', '.join(sorted(backends))}, though nothing should compile"] if backends else []
    if backends != {expected}:
        return [f"compiled by {', '.join(sorted(backends)) or 'nothing'}, claimed {expected}"]
    return []


def _launches_disagree(claim: dict[str, str], profile: Sequence[ProfiledStep]) -> list[str]:
    """Launches of the profiled window against the ledger: graphs where graphs are claimed, none elsewhere."""
    if claim["replay"] == "none":
        return [f"profile of {s.phase}/{s.size} shows graph launches" for s in profile if s.graph_launches_per_call > 0]
    reasons = []
    for step in profile:
        if step.graph_launches_per_call < 1:
            reasons.append(f"profile of {step.phase}/{step.size} shows no graph launch")
        if step.individual_kernels_per_call > MAX_INDIVIDUAL_KERNELS:
            reasons.append(f"profile of {step.phase}/{step.size}: {step.individual_kernels_per_call:.0f} kernels a call outside the graph")
    return reasons


def _confirmation(paths: Counter[str], expected: str, walked: dict[str, Any]) -> str:
    replays = walked["counts"].get("replay", 0)
    text = f"{paths[expected]} of {sum(paths.values())} steps {expected}"
    return f"{text}, {replays} graph replays counted" if expected == "replayed" else text
