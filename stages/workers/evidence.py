"""The verdict on a mode's claim: which rows of evidence it must satisfy, and the sentence for each that it does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from stages.core.records.path import Evidence, EvidenceVerdict, Finding, PathRun, ProfiledStep, StepEvent, claimed_path

EXPECTED_BACKEND = {"dynamo": "eager", "inductor": "inductor", "inductor_autotune": "inductor", "aot": "cudagraphs"}
MAX_INDIVIDUAL_KERNELS = 4  # input copies, RNG fills, an output clone: what a replay may leave outside
MOST_NOTED = 10
MAX_OUTSIDE_REGIONS = 0.5  # of the work's time; more, and the mode is mostly the eager one


def judge(
    claim: dict[str, str], walked: dict[str, Any], path_runs: Sequence[PathRun], profile: Sequence[ProfiledStep], device: str
) -> Evidence:
    """`confirmed` when every step took the claimed path and the profile agrees; `refuted` with reasons when one did not.

    `not_proven` when a counter that the verdict needs does not exist in this torch, there is no profile on a CUDA device,
    the profile has kernels that belong to no launch, replays of one shape differ in their kernels, or the profile of a mode
    that calls packages shows none.
    """
    paths = Counter[str]()
    for run in path_runs:
        paths[run.path] += run.count
    expected = claimed_path(claim)
    found = findings(walked)
    events = [StepEvent(**event) for event in walked.get("events", [])]
    unproven = _missing(claim, walked) + _unattributed(profile) + _unprofiled(profile, device) + _without_package(claim, profile)
    refuted = _off_path(paths, expected, claim, _explanation(claim, walked, events, expected, found)) + _wrong_backend(claim, walked)
    refuted += [finding.reason for finding in found if finding.kind == "recompile_limit"]
    refuted += _mostly_outside(claim, profile)
    if device == "cuda":
        refuted += _launches_disagree(claim, profile)
    verdict: EvidenceVerdict = "refuted" if refuted else "not_proven" if unproven else "confirmed"
    counts, since_spawn = walked["counts"], walked["since_spawn"]
    return Evidence(
        verdict=verdict,
        reasons=(refuted + unproven or [_confirmation(paths, expected, walked)]) + _noted(found, claim),
        num_steps=sum(paths.values()),
        num_compiled_calls=counts.get("compiled_call", 0) + counts.get("package_call", 0),
        num_graph_breaks=max(since_spawn.get("graph_break", 0), _num(found, "graph_break")),  # each misses some
        num_recompiles=counts.get("compilation", 0),
        num_captures=since_spawn.get("capture", 0),
        num_recordings=since_spawn.get("tree_record", 0),
        num_replays=counts.get("replay", 0),
        path_counts=dict(paths),
        counters=counts,
        sources=["class-level counters", "compiler log artifacts", "profiled window"],
        num_recompile_limit_hits=_num(found, "recompile_limit"),
        findings=found,
        events=events,
    )


def _is_packaged(claim: dict[str, str]) -> bool:
    """Ahead of time and without CUDA graphs: AOTInductor packages, which Dynamo never sees."""
    return claim["transform"] == "aot" and claim["replay"] == "none"


def findings(walked: dict[str, Any]) -> list[Finding]:
    """What torch said since the spawn, each sentence once. Recompiles for another size are how `dynamic=False` works."""
    said = [(kind, text, num) for kind, text, num in walked.get("said", []) if not (kind == "recompile" and "size mismatch" in text)]
    return [Finding(kind=kind, reason=text, num=num) for kind, text, num in said]


def _num(found: Sequence[Finding], kind: str) -> int:
    return sum(finding.num for finding in found if finding.kind == kind)


def _noted(found: Sequence[Finding], claim: dict[str, str]) -> list[str]:
    """What a person should know whatever the verdict: breaks and unplanned recompiles, skips where replay is not claimed."""
    kinds = ("graph_break", "recompile") if claim["replay"] == "trees" else ("graph_break", "recompile", "cudagraph_skip")
    return [finding.reason for finding in found if finding.kind in kinds][:MOST_NOTED]


def _missing(claim: dict[str, str], walked: dict[str, Any]) -> list[str]:
    needed = {"manual": ("CUDAGraph.",), "trees": ("CUDAGraph.", "CUDAGraphTreeManager.")}.get(claim["replay"], ())
    if claim["transform"] != "none":
        needed = (*needed, "AOTICompiledModel" if _is_packaged(claim) else "call_user_compiler")
    gone = [name for name in walked["missing"] if any(part in name for part in needed)]
    return [f"this torch has no {name}: its calls cannot be counted" for name in gone]


def _unattributed(profile: Sequence[ProfiledStep]) -> list[str]:
    loose = [step for step in profile if step.unattributed_kernels_per_call > 0]
    reasons = [f"profile of {_shape(s)}: {s.unattributed_kernels_per_call:.1f} kernels a call belong to no launch" for s in loose]
    ranges = [(step, step.graph_kernels_range) for step in profile if step.graph_kernels_range]
    return reasons + [f"profile of {_shape(s)}: {low} to {high} kernels of graphs a call" for s, (low, high) in ranges if low != high]


def _unprofiled(profile: Sequence[ProfiledStep], device: str) -> list[str]:
    return ["nothing was profiled: no launch confirms the counters"] if device == "cuda" and not profile else []


def _without_package(claim: dict[str, str], profile: Sequence[ProfiledStep]) -> list[str]:
    """Calls of packages were counted, but none stands in the profile."""
    unmarked = [step for step in profile if _is_packaged(claim) and step.share_outside_regions is None]
    return [f"profile of {_shape(step)} shows no call of a package" for step in unmarked]


def _off_path(paths: Counter[str], expected: str, claim: dict[str, str], because: str) -> list[str]:
    total, right = sum(paths.values()), paths[expected]
    if total == right and total > 0:
        return []
    others = ", ".join(f"{count} {path}" for path, count in paths.items() if path != expected) or "no step ran"
    asked = f"{claim['transform']} kernels, replay {claim['replay']}"
    return [f"asked for {asked}; {right} of {total} steps {expected} ({others}){because}"]


def _explanation(claim: dict[str, str], walked: dict[str, Any], events: Sequence[StepEvent], expected: str, found: list[Finding]) -> str:
    """The first step off the path with torch's reason in it, and why CUDA graphs were skipped where the claim needs them."""
    text = ""
    first = next((event for event in events if event.path != expected), None)
    if first is not None:
        said = f": {first.reasons[0]}" if first.reasons else ""
        text += f"; first at step {first.step}, {first.phase} of {first.size} padded to {first.padded_size}{said}"
    if claim["replay"] != "trees":
        return text
    skips = [finding.reason for finding in found if finding.kind == "cudagraph_skip"] or walked["skips"][:1]
    silent = walked["since_spawn"].get("cudagraph_skip", 0)
    if skips:
        return f"{text}; torch says: {skips[0]}"
    return text + (f"; torch skipped CUDA graphs {silent} times and gave no reason" if silent else "")


def _wrong_backend(claim: dict[str, str], walked: dict[str, Any]) -> list[str]:
    backends = set(walked["backends"].values())
    if _is_packaged(claim):  # torch.export has a capturing backend of its own
        found = sorted(backends & set(EXPECTED_BACKEND.values()))
        return [f"{', '.join(found)} compiled at run time, though packages were claimed"] if found else []
    expected = EXPECTED_BACKEND.get(claim["transform"])
    if expected is None:
        return [f"compiled by {', '.join(sorted(backends))}, though nothing should compile"] if backends else []
    if backends != {expected}:
        return [f"compiled by {', '.join(sorted(backends)) or 'nothing'}, claimed {expected}"]
    return []


def _mostly_outside(claim: dict[str, str], profile: Sequence[ProfiledStep]) -> list[str]:
    """Compiled calls counted, but most of the step's work outside them."""
    if claim["transform"] == "none" or claim["replay"] != "none":
        return []
    outside = [(step, step.share_outside_regions) for step in profile if (step.share_outside_regions or 0) > MAX_OUTSIDE_REGIONS]
    return [f"profile of {_shape(step)}: {share:.0%} of the work ran outside compiled functions" for step, share in outside]


def _launches_disagree(claim: dict[str, str], profile: Sequence[ProfiledStep]) -> list[str]:
    """Launches of the profiled window against the ledger: graphs where graphs are claimed, none elsewhere."""
    if claim["replay"] == "none":
        return [f"profile of {_shape(step)} shows graph launches" for step in profile if step.graph_launches_per_call > 0]
    reasons = []
    for step in profile:
        if step.graph_launches_per_call < 1:
            reasons.append(f"profile of {_shape(step)} shows no graph launch")
        if step.individual_kernels_per_call > MAX_INDIVIDUAL_KERNELS:
            reasons.append(f"profile of {_shape(step)}: {step.individual_kernels_per_call:.0f} kernels a call outside the graph")
    return reasons


def _shape(step: ProfiledStep) -> str:
    return f"{step.phase}/{step.size}"


def _confirmation(paths: Counter[str], expected: str, walked: dict[str, Any]) -> str:
    replays = walked["counts"].get("replay", 0)
    text = f"{paths[expected]} of {sum(paths.values())} steps {expected}"
    return f"{text}, {replays} graph replays counted" if expected == "replayed" else text
