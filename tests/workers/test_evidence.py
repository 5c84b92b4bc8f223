"""The verdict on a claim: a table of what the counters and the profile saw, and what follows."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from stages.core.records.path import Evidence, PathRun, ProfiledStep
from stages.workers.evidence import judge
from stages.workers.walking import path_of

CLAIMS = {
    "eager": ("none", "none"),
    "dynamo": ("dynamo", "none"),
    "compile": ("inductor", "none"),
    "max_autotune_no_cudagraphs": ("inductor_autotune", "none"),
    "cuda_graph": ("none", "manual"),
    "compile_cuda_graph": ("inductor", "manual"),
    "cudagraph_trees": ("inductor", "trees"),
}
BACKENDS = {"none": {}, "dynamo": {"0/0": "eager"}, "inductor": {"0/0": "inductor"}, "inductor_autotune": {"0/0": "inductor"}}
RIGHT_PATH = {"none": "eager", "dynamo": "compiled", "inductor": "compiled", "inductor_autotune": "compiled"}


def profiled(**launches: float) -> ProfiledStep:
    defaults = {"graph_launches": 0.0, "graph_kernels": 0.0, "individual_kernels": 0.0, "unattributed_kernels": 0.0}
    per_call = {f"{name}_per_call": value for name, value in {**defaults, **launches}.items()}
    return ProfiledStep(
        phase="decode",
        size=8,
        num_calls=5,
        wall_us=100,
        busy_us=60,
        host_launch_us=10,
        host_python_us=20,
        host_wait_us=10,
        host_compile_us=0,
        kernels_per_call=sum(launches.values()),
        attention_kernels=[],
        top_kernels=[],
        **per_call,
    )


def judged(
    mode: str, path: str = "", device: str = "cpu", profile: ProfiledStep | None = None, num_steps: int = 10, **walked: Any
) -> Evidence:
    """A mode of which every step took its own path (or `path`), with anything else changed."""
    transform, replay = CLAIMS[mode]
    claim = {"family": "torch", "transform": transform, "replay": replay}
    right = RIGHT_PATH[transform] if replay == "none" else "replayed"
    counts = {"replay": num_steps} if replay != "none" else {}
    seen = {
        "counts": counts,
        "since_spawn": {"capture": 3},
        "backends": BACKENDS[transform],
        "missing": [],
        "skips": [],
        **walked,
    }
    runs = [PathRun(path=path or right, phase="decode", padded_size=8, count=num_steps)] if num_steps else []  # type: ignore[arg-type]
    return judge(claim, seen, runs, [profile] if profile else [], device)


REPLAYING = [mode for mode, (_, replay) in CLAIMS.items() if replay != "none"]
LAUNCHING = [mode for mode, (_, replay) in CLAIMS.items() if replay == "none"]


@pytest.mark.parametrize("mode", LAUNCHING)
def test_launched_mode_is_confirmed_when_every_step_took_its_path(mode: str) -> None:
    for device, profile in (("cpu", profiled()), ("cuda", profiled(individual_kernels=30))):
        evidence = judged(mode, device=device, profile=profile)
        assert (evidence.verdict, evidence.num_steps) == ("confirmed", 10), evidence.reasons
        assert evidence.reasons[0].startswith("10 of 10 steps ")


@pytest.mark.parametrize("mode", REPLAYING)
def test_replaying_mode_is_confirmed_when_steps_and_launches_are_replays(mode: str) -> None:
    evidence = judged(mode, device="cuda", profile=profiled(graph_launches=1, graph_kernels=40, individual_kernels=2))
    assert evidence.verdict == "confirmed", evidence.reasons
    assert evidence.reasons == ["10 of 10 steps replayed, 10 graph replays counted"]


REFUTED: dict[str, tuple[str, dict[str, Any], str]] = {
    "compiled step in eager": ("eager", {"path": "compiled"}, "0 of 10 steps eager (10 compiled)"),
    "compilation in eager": ("eager", {"backends": {"0/0": "inductor"}}, "compiled by inductor, though nothing should compile"),
    "eager step in dynamo": ("dynamo", {"path": "eager"}, "0 of 10 steps compiled (10 eager)"),
    "dynamo compiled by inductor": ("dynamo", {"backends": {"0/0": "inductor"}}, "compiled by inductor, claimed eager"),
    "nothing compiled": ("compile", {"backends": {}}, "compiled by nothing, claimed inductor"),
    "one graph of another backend": (
        "compile",
        {"backends": {"0/0": "inductor", "1/0": "eager"}},
        "compiled by eager, inductor, claimed inductor",
    ),
    "recompiled": ("compile", {"path": "recompiled"}, "0 of 10 steps compiled (10 recompiled)"),
    "fallback": ("cuda_graph", {"path": "fallback"}, "0 of 10 steps replayed (10 fallback)"),
    "skipped trees": (
        "cudagraph_trees",
        {"path": "fallback", "skips": ["skipping cudagraphs due to mutated inputs"]},
        "torch says: skipping cudagraphs due to mutated inputs",
    ),
    "no step": ("compile", {"num_steps": 0}, "0 of 0 steps compiled (no step ran)"),
    "graph launches in a launched mode": (
        "compile",
        {"device": "cuda", "profile": profiled(graph_launches=1)},
        "profile of decode/8 shows graph launches",
    ),
    "no graph launch": (
        "cuda_graph",
        {"device": "cuda", "profile": profiled(individual_kernels=3)},
        "profile of decode/8 shows no graph launch",
    ),
    "kernels beside the graph": (
        "cudagraph_trees",
        {"device": "cuda", "profile": profiled(graph_launches=1, individual_kernels=30)},
        "30 kernels a call outside the graph",
    ),
}


@pytest.mark.parametrize("case", REFUTED)
def test_claim_is_refuted_with_the_reason(case: str) -> None:
    mode, changes, reason = REFUTED[case]
    evidence = judged(mode, **changes)
    assert evidence.verdict == "refuted"
    assert reason in "; ".join(evidence.reasons)


@pytest.mark.parametrize(
    ("mode", "missing", "verdict"),
    [
        ("eager", "torch.cuda.graphs.CUDAGraph.replay", "confirmed"),
        ("compile", "torch._dynamo.output_graph.OutputGraph.call_user_compiler", "not_proven"),
        ("eager", "torch._dynamo.output_graph.OutputGraph.call_user_compiler", "confirmed"),
        ("cuda_graph", "torch.cuda.graphs.CUDAGraph.replay", "not_proven"),
        ("compile_cuda_graph", "torch._inductor.cudagraph_trees.CUDAGraphTreeManager.run", "confirmed"),
        ("cudagraph_trees", "torch._inductor.cudagraph_trees.CUDAGraphTreeManager.run", "not_proven"),
    ],
)
def test_claim_whose_counter_this_torch_lacks_is_not_proven(mode: str, missing: str, verdict: str) -> None:
    assert judged(mode, missing=[missing]).verdict == verdict


def test_kernel_of_no_launch_leaves_the_claim_unproven_and_wrong_steps_refute_it_all_the_same() -> None:
    loose = profiled(graph_launches=1, unattributed_kernels=2)
    assert judged("cuda_graph", device="cuda", profile=loose).verdict == "not_proven"
    assert judged("cuda_graph", path="fallback", device="cuda", profile=loose).verdict == "refuted"


@pytest.mark.parametrize(
    ("did", "replay", "path"),
    [
        ({}, "none", "eager"),
        ({"compiled_call": 1}, "none", "compiled"),
        ({"compiled_call": 1, "compilation": 1}, "none", "recompiled"),
        ({"replay": 1}, "none", "replayed"),
        ({"replay": 1}, "manual", "replayed"),
        ({}, "manual", "fallback"),
        ({"replay": 2}, "manual", "fallback"),
        ({"replay": 1, "compiled_call": 1}, "manual", "fallback"),
        ({"compiled_call": 1}, "manual", "fallback"),
        ({"capture": 1, "compiled_call": 1}, "manual", "captured"),
        ({"tree_run": 1, "tree_replay": 1, "replay": 1, "compiled_call": 1}, "trees", "replayed"),
        ({"tree_run": 2, "tree_replay": 2, "replay": 2, "compiled_call": 2}, "trees", "replayed"),
        ({"tree_run": 2, "tree_replay": 1, "replay": 1, "compiled_call": 2}, "trees", "fallback"),
        ({"tree_run": 1, "tree_warmup": 1, "compiled_call": 1}, "trees", "fallback"),
        ({"compiled_call": 1}, "trees", "fallback"),
        ({}, "trees", "fallback"),
        ({"tree_run": 1, "tree_record": 1, "capture": 1, "compiled_call": 1}, "trees", "recorded"),
        ({"compilation": 1, "tree_run": 1, "tree_replay": 1, "replay": 1}, "trees", "recompiled"),
    ],
)
def test_path_of_a_step_follows_from_what_it_did(did: dict[str, int], replay: str, path: str) -> None:
    assert path_of(Counter(did), replay) == path


LIMIT = "step at model.py:9 reached recompile_limit 8: tensor 'x' size mismatch; what is new runs eagerly"
BREAK = "graph break at model.py:12: Data-dependent branching"


def test_recompile_limit_refutes_even_when_every_walked_step_compiled() -> None:
    evidence = judged("compile", said=[["recompile_limit", LIMIT, 1]])
    assert (evidence.verdict, evidence.reasons, evidence.num_recompile_limit_hits) == ("refuted", [LIMIT], 1)


def test_graph_break_is_noted_beside_the_confirmation_and_counted_where_dynamo_does_not() -> None:
    evidence = judged("compile", said=[["graph_break", BREAK, 2]])
    assert (evidence.verdict, evidence.num_graph_breaks) == ("confirmed", 2)
    assert evidence.reasons == ["10 of 10 steps compiled", BREAK]


def test_recompile_for_a_planned_size_is_no_finding_and_one_for_another_guard_is() -> None:
    size, other = "step recompiled: tensor 'x' size mismatch at index 0", "step recompiled: self.index == 3"
    evidence = judged("compile", said=[["recompile", size, 3], ["recompile", other, 1]])
    assert [finding.reason for finding in evidence.findings] == [other]


def test_mode_whose_work_mostly_runs_outside_its_compiled_functions_is_refuted() -> None:
    outside = profiled().model_copy(update={"share_outside_regions": 0.8})
    evidence = judged("compile", profile=outside)
    assert (evidence.verdict, evidence.reasons) == ("refuted", ["profile of decode/8: 80% of the work ran outside compiled functions"])
    assert judged("compile", profile=outside.model_copy(update={"share_outside_regions": 0.3})).verdict == "confirmed"
    assert judged("eager", profile=outside).verdict == "confirmed"


def test_replays_with_different_kernels_prove_nothing() -> None:
    varied = profiled(graph_launches=1, graph_kernels=40).model_copy(update={"graph_kernels_range": (38, 40)})
    evidence = judged("cuda_graph", device="cuda", profile=varied)
    assert (evidence.verdict, evidence.reasons) == ("not_proven", ["profile of decode/8: 38 to 40 kernels of graphs a call"])


def test_replays_without_a_profile_are_not_proven() -> None:
    assert judged("cuda_graph", device="cuda").verdict == "not_proven"


def test_first_step_off_the_path_is_told_with_its_size_and_reason() -> None:
    event = {"step": 3, "phase": "decode", "size": 5, "padded_size": 8, "path": "recompiled", "reasons": ["self.index == 3"]}
    evidence = judged("compile", path="recompiled", events=[event])
    assert evidence.reasons[0].endswith("; first at step 3, decode of 5 padded to 8: self.index == 3")


def test_skip_without_a_word_is_told_as_such() -> None:
    reason = judged("cudagraph_trees", path="fallback", since_spawn={"cudagraph_skip": 2}).reasons[0]
    assert reason.endswith("; torch skipped CUDA graphs 2 times and gave no reason")


PACKAGED = {"family": "torch", "transform": "aot", "replay": "none"}


@pytest.mark.parametrize(
    ("path", "backends", "share_outside", "verdict", "reason"),
    [
        ("compiled", {}, 0.1, "confirmed", "10 of 10 steps compiled"),
        ("fallback", {}, 0.1, "refuted", "0 of 10 steps compiled (10 fallback)"),
        ("compiled", {"0/0": "fullgraph_compiler"}, 0.1, "confirmed", "10 of 10 steps compiled"),
        ("compiled", {"0/0": "inductor"}, 0.1, "refuted", "inductor compiled at run time, though packages were claimed"),
        ("compiled", {}, 0.9, "refuted", "90% of the work ran outside compiled functions"),
        ("compiled", {}, None, "not_proven", "profile of decode/8 shows no call of a package"),
    ],
)
def test_packages_are_proved_by_their_calls_and_the_profile(
    path: str, backends: dict[str, str], share_outside: float | None, verdict: str, reason: str
) -> None:
    seen = {"counts": {"package_call": 10}, "since_spawn": {}, "backends": backends, "missing": ["x.call_user_compiler"], "skips": []}
    runs = [PathRun(path=path, phase="decode", padded_size=8, count=10)]  # type: ignore[arg-type]
    profile = profiled(individual_kernels=30).model_copy(update={"share_outside_regions": share_outside})
    for device in ("cpu", "cuda"):
        evidence = judge(PACKAGED, seen, runs, [profile], device)
        assert evidence.verdict == verdict, evidence.reasons
        assert reason in evidence.reasons[0]
        assert evidence.num_compiled_calls == 10


def test_packages_are_not_proven_where_their_calls_cannot_be_counted() -> None:
    seen = {"counts": {}, "since_spawn": {}, "backends": {}, "missing": ["torch.x.AOTICompiledModel"], "skips": []}
    runs = [PathRun(path="compiled", phase="decode", padded_size=8, count=10)]
    assert judge(PACKAGED, seen, runs, [], "cpu").verdict == "not_proven"
