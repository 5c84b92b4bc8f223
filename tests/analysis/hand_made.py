"""Hand-made studies: records whose right answer is known, and one realistic example (`example_records`).

`python -m tests.analysis.hand_made` writes the example's study.json to tests/views/example_study.json.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from stages.analysis import answers, statistics
from stages.analysis.floors import Ceilings, Work
from stages.analysis.reading import StudyRecords, skipped
from stages.analysis.study import study_document
from stages.core import atomic
from stages.core.records.base import Hashes, Host
from stages.core.records.correctness import Answers, Check, CorrectnessRecord
from stages.core.records.load import Load, LoadRecord, LoadRun, ServedRequest
from stages.core.records.path import CaptureRecord, Evidence, KernelTime, Memory, PathProof, PathRun, ProfiledStep
from stages.core.records.plan import Plan, StepRun
from stages.core.records.profiled import ReplayCost
from stages.core.records.startup import CacheUse, Phases, Start, Startup, WarmupRecord
from stages.core.records.steps import Block, Cell, Rotations, SequenceRun, SteadyStateRecord
from stages.core.settings import Params, Slo
from stages.core.typed_yaml import load_yaml

ROOT = Path(__file__).resolve().parents[2]
HASHES = Hashes(config="c0ffee", environment="abba", code="f00d")
PATHS = {
    ("none", "none"): "eager",
    ("dynamo", "none"): "compiled",
    ("inductor", "none"): "compiled",
    ("inductor_autotune", "none"): "compiled",
}


@dataclass
class Spec:
    """One mode: its claim, its step times (us by shape) and what the other stages found."""

    step_us: dict[str, float]
    busy_us: float = 2000.0
    transform: str = "none"
    replay: str = "none"
    cold_s: tuple[float, ...] = (5.0,)
    warm_s: tuple[float, ...] = (4.0,)
    artifact_s: tuple[float, ...] = ()
    goodput: dict[str, float] = field(default_factory=dict)
    attainment: dict[str, float] = field(default_factory=dict)
    is_lower_bound: bool = False
    tpot_ms: float = 10.0
    requests_per_rate: int = 600
    verdict: str = "confirmed"
    evidence_reasons: tuple[str, ...] = ()
    correctness: str = "correct"
    status: str = "ok"
    reason: str = ""
    noise: float = 0.002
    attention: tuple[str, ...] = ("flash_fwd_splitkv_kernel",)


def params(**changes: Any) -> Params:
    """A study's choices; the modes and factorials are set by `records_of`."""
    found = {
        "name": "hand-made",
        "model": "llama_1b",
        "trace": "chat",
        "modes": ["eager"],
        "factorials": [],
        "measure": "standard",
        "device": "cuda",
        "precision": "bf16",
        "slo": Slo(ttft_ms=1000.0, tpot_ms=50.0),
        "arrival_rates": [2.0],
        "lifetimes_s": [60.0, 600.0, 3600.0],
    }
    return Params(**(found | changes))


def plan(decode: dict[int, int], prefill: dict[int, int]) -> Plan:
    """A plan with these numbers of steps by size."""
    runs = [StepRun(phase="prefill", size=size, padded_size=size, count=count) for size, count in prefill.items()]
    runs += [StepRun(phase="decode", size=size, padded_size=size, count=count) for size, count in decode.items()]
    return Plan(
        trace="chat",
        num_requests=max(1, sum(prefill.values())),
        span_s=60.0,
        recorded_rate_per_s=3.18,
        context_tokens=2048,
        max_batch=max(decode),
        length_factor=0.5,
        capture_sizes=sorted(decode),
        prompt_sizes=sorted(prefill),
        num_steps=sum(run.count for run in runs),
        num_decode_steps=sum(decode.values()),
        runs=runs,
        statistics={"prompt_p50_tokens": 510.0, "output_p50_tokens": 64.0, "padding_waste": 0.12},
        scheduler={"policy": "prefill_first", "virtual_decode_step_ms": 5.0, "virtual_prefill_us_per_token": 10.0},
    )


def envelope(stage: str, item: str, spec: Spec) -> dict[str, Any]:
    """What every record of a mode shares."""
    return {
        "stage": stage,
        "item": item,
        "status": spec.status,
        "reason": spec.reason,
        "log_tail": ["RuntimeError: out of memory"] if spec.status == "failed" else [],
        "started_at": "2026-11-29T10:00:00Z",
        "ended_at": "2026-11-29T10:04:00Z",
        "command": f"python -m stages.{stage} {'--factorial' if stage == 'steady_state' else '--mode'} {item}",
        "hashes": HASHES,
        "host": Host(hostname="gpu-box", gpu_uuid="GPU-1234", gpu_free_bytes=140_000_000_000, load_average=0.4),
    }


def warmup_record(mode: str, spec: Spec) -> WarmupRecord:
    """Starts with the ready times of the spec."""
    starts = [start(cache, ready_s, spec.transform) for cache in ("cold", "warm", "artifact") for ready_s in getattr(spec, f"{cache}_s")]
    return WarmupRecord(**envelope("warmup", mode, spec), data=Startup(starts=starts) if spec.status == "ok" else None)


def start(cache: str, ready_s: float, transform: str = "inductor") -> Start:
    """A start whose phases sum to its ready time less 2 %, and whose counters say what it claims."""
    used = {"fx_graph_misses": 4, "num_files_after": 60} if cache == "cold" else {"fx_graph_hits": 4}
    compile_s = max(0.0, ready_s - 4.5)
    rest_s = ready_s * 0.98 - compile_s * 0.9
    phases = Phases(
        import_s=rest_s * 0.4,
        device_init_s=rest_s * 0.1,
        load_s=rest_s * 0.3,
        dynamo_s=compile_s * 0.2,
        inductor_s=compile_s * 0.5,
        kernel_compile_s=compile_s * 0.2,
        execute_s=rest_s * 0.2,
    )
    return Start(
        cache=cache,  # type: ignore[arg-type]
        ready_s=ready_s,
        unaccounted_s=ready_s * 0.02,
        first_request_s=ready_s * 0.9,
        phases=phases,
        calls_s={"decode/1": [compile_s * 0.2 + 0.02, 0.013, 0.012], "prefill/512": [compile_s * 0.2 + 0.05, 0.021, 0.02]},
        cache_use=CacheUse(**({} if transform in ("none", "dynamo") else used)),
        proved=True,
        proof=f"{cache}: counters and listing agree",
    )


def capture_record(mode: str, spec: Spec) -> CaptureRecord:
    """Evidence, profile and memory of the spec."""
    path = PATHS.get((spec.transform, spec.replay), "replayed") if spec.verdict == "confirmed" else "eager"
    replayed = path == "replayed"
    counts = {path: 1990, "recorded": 10} if replayed else {path: 2000}
    runs = [PathRun(path="recorded", phase="decode", padded_size=1, count=10)] if replayed else []  # type: ignore[list-item]
    for index in range(20):
        runs.append(PathRun(path=path, phase=("decode", "prefill")[index % 2], padded_size=(8, 512)[index % 2], count=(95, 4)[index % 2]))  # type: ignore[arg-type]
    evidence = Evidence(
        verdict=spec.verdict,  # type: ignore[arg-type]
        reasons=list(spec.evidence_reasons),
        num_steps=2000,
        num_compiled_calls=0 if path == "eager" else 2000,
        num_graph_breaks=0,
        num_recompiles=0,
        num_captures=4 if replayed else 0,
        num_recordings=0,
        num_replays=1990 if replayed else 0,
        path_counts=counts,
        counters={"replay": 1990} if replayed else {},
        sources=["replay counters", "dynamo counters"],
    )
    proof = PathProof(
        claim={"transform": spec.transform, "replay": spec.replay},
        evidence=evidence,
        path_runs=runs,
        steps_walked=2000,
        steps_in_trace=5000,
        profile=[profiled(shape, wall_us, spec, replayed) for shape, wall_us in spec.step_us.items()],
        memory=Memory(
            weights_bytes=2_471_600_000,
            kv_cache_bytes=1_073_741_824,
            peak_bytes=3_900_000_000,
            reserved_bytes=4_200_000_000,
            graph_pool_bytes=260_000_000 if replayed else 0,
            outside_allocator_bytes=1_200_000 if replayed else 0,
            max_sequences=2030 - (4 if replayed else 0),
        ),
    )
    return CaptureRecord(**envelope("capture", mode, spec), data=proof if spec.status == "ok" else None)


def profiled(shape: str, wall_us: float, spec: Spec, replayed: bool) -> ProfiledStep:
    """A profile dilated by a quarter of the idle time, which the host spends launching (0.6), in Python (0.3), waiting (0.1)."""
    busy_us = min(spec.busy_us * (1 if shape.startswith("decode") else 4), wall_us * 0.97)
    idle_us = (wall_us - busy_us) * 1.25
    launches = 1 if replayed else 800 if spec.transform == "none" else 230
    return ProfiledStep(
        phase=shape.split("/")[0],  # type: ignore[arg-type]
        size=int(shape.split("/")[1]),
        num_calls=5,
        wall_us=busy_us + idle_us,
        busy_us=busy_us,
        host_launch_us=idle_us * 0.55,
        host_python_us=idle_us * 0.3,
        host_wait_us=idle_us * 0.1,
        host_compile_us=0.0,
        kernels_per_call=230.0 if spec.transform != "none" else 800.0,
        graph_launches_per_call=float(replayed),
        graph_kernels_per_call=230.0 if replayed else 0.0,
        individual_kernels_per_call=0.0 if replayed else float(launches),
        unattributed_kernels_per_call=0.0,
        attention_kernels=list(spec.attention),
        top_kernels=[KernelTime(name="gemv_bf16", total_us=busy_us * 0.7, count=113.0), own_kernel(spec, busy_us)],
        kernels_us=busy_us,
        replay_cost=replayed_cost(spec) if replayed else None,
    )


def own_kernel(spec: Spec, busy_us: float) -> KernelTime:
    """What a mode's kernels have that others have not: eager copies, Inductor fuses."""
    compiled = spec.transform not in ("none", "dynamo")
    name = "triton_poi_fused_rope_0" if compiled else "void at::native::vectorized_elementwise_kernel<8, CUDAFunctor_add>"
    return KernelTime(name=name, total_us=busy_us * (0.1 if compiled else 0.2), count=16.0)


def replayed_cost(spec: Spec) -> ReplayCost:
    """As seen on an H200: 20 us of launch and little Python; through CUDAGraph Trees also guards, wrappers and their checks."""
    trees = float(spec.replay == "trees")
    host = {"guards_us": 10.0 * trees, "wrapper_us": 28.0 * trees, "tree_checks_us": 38.0 * trees, "input_copies_us": 0.0}
    return ReplayCost(**host, graph_launch_us=20.0, other_us=9.0)


def load_record(mode: str, spec: Spec, params_: Params) -> LoadRecord:
    """One run a rate of the spec, requests drawn from a seeded distribution around its TPOT."""
    runs = [load_run(rate, goodput, spec, params_) for rate, goodput in spec.goodput.items()]
    met = [run.request_goodput for run in runs if run.slo_attainment >= 0.99]
    load = Load(
        slo={"ttft_ms": params_.slo.ttft_ms, "tpot_ms": params_.slo.tpot_ms},
        runs=runs,
        max_goodput=max(met) if met else None,
        max_goodput_is_lower_bound=spec.is_lower_bound,
    )
    return LoadRecord(**envelope("load", mode, spec), data=load if spec.status == "ok" else None)


def load_run(rate: str, goodput: float, spec: Spec, params_: Params) -> LoadRun:
    """One rate: `num_sent` and the window follow from the rate and the number of requests."""
    rng = random.Random(f"{rate}-{spec.tpot_ms}")
    attainment = spec.attainment.get(rate, 1.0)
    arrival = float(rate) if rate != "recorded" else 3.18
    requests = [request(index, index / arrival, spec.tpot_ms, rng) for index in range(spec.requests_per_rate)]
    values = {name: [getattr(item, name) for item in requests] for name in ("ttft_ms", "tpot_ms", "e2el_ms", "queue_ms")}
    return LoadRun(
        rate=rate,
        arrival_rate_per_s=arrival,
        window_s=spec.requests_per_rate / arrival,
        num_sent=spec.requests_per_rate,
        num_completed=spec.requests_per_rate,
        num_failed=0,
        request_goodput=goodput,
        slo_attainment=attainment,
        **{name: statistics.percentiles(found) for name, found in values.items()},
        queueing_share=0.1,
        dispatch_lateness_ms=statistics.percentiles([0.1] * 30),
        num_decode_steps=1000,
        num_prefill_steps=spec.requests_per_rate,
        batch_histogram={"1": 600, "7": 400},
        host_us_per_decode_step=400.0,
        num_compiles_during=0,
        energy_j=5200.0,
        peak_bytes=3_950_000_000,
        requests=requests,
    )


def request(index: int, arrival_s: float, tpot_ms: float, rng: random.Random) -> ServedRequest:
    """A served request with log-normal times."""
    tpot = tpot_ms * math.exp(rng.gauss(0, 0.05))
    ttft = 3 * tpot + rng.expovariate(1 / 20)
    return ServedRequest(
        request_id=index,
        arrival_s=arrival_s,
        prompt_tokens=500,
        output_tokens=64,
        queue_ms=ttft / 4,
        ttft_ms=ttft,
        tpot_ms=tpot,
        e2el_ms=ttft + 63 * tpot,
        completed=True,
        hit_by="recording" if index == 3 else "",
    )


def correctness_record(mode: str, spec: Spec) -> CorrectnessRecord:
    """Three checks; a wrong mode fails the one that holds outputs over a replay."""
    wrong = spec.correctness == "wrong"
    checks = [
        Check(name="logits_vs_eager", subject="decode/8", verdict="pass", value=0.002, limit=0.03, num_calls=6),
        Check(name="exact_match", subject="recall", verdict="pass", value=1.0, limit=0.99, num_calls=24),
        Check(
            name="held_output",
            subject="decode/1",
            verdict="fail" if wrong else "pass",
            value=1.7 if wrong else 0.0,
            limit=0.0,
            num_calls=6,
            reason="the output of call k changed during call k+1" if wrong else "",
        ),
    ]
    data = Answers(verdict=spec.correctness, checks=checks)  # type: ignore[arg-type]
    return CorrectnessRecord(**envelope("correctness", mode, spec), data=data if spec.status == "ok" else None)


def steady_state_record(
    name: str, cells: dict[str, str], specs: dict[str, Spec], num_sets: int, steps: Plan, twins: tuple[str, ...] = ("E", "CR")
) -> SteadyStateRecord:
    """Rotations in which every cell of a set has one offset of its own, drawn from a seeded normal distribution."""
    keys = {**cells, **{f"{cell}#2": cells[cell] for cell in twins if cell in cells}}
    rng = random.Random(name)
    blocks, sequences = [], []
    for set_index in range(num_sets):
        offsets = {cell: math.exp(rng.gauss(0, specs[mode].noise)) for cell, mode in keys.items()}
        for rotation in range(4):
            for order, (cell, mode) in enumerate(keys.items()):
                if specs[mode].status == "ok":
                    turn = {"cell": cell, "mode": mode, "set_index": set_index, "rotation_index": rotation}
                    blocks += [block(turn, order, shape, us * offsets[cell], rng) for shape, us in specs[mode].step_us.items()]
                    sequences.append(sequence(turn, specs[mode].step_us, offsets[cell], steps))
    found = Rotations(
        factorial=name,
        cells=[Cell(cell=cell, mode=mode, status=specs[mode].status, reason=specs[mode].reason) for cell, mode in keys.items()],  # type: ignore[arg-type]
        num_sets=num_sets,
        decode_context_tokens=1024,
        sequence_steps=steps.num_steps,
        sequence_steps_in_trace=steps.num_steps,
        blocks=blocks,
        sequences=sequences,
    )
    return SteadyStateRecord(**envelope("steady_state", name, Spec(step_us={})), data=found)


def block(turn: dict[str, Any], order: int, shape: str, us: float, rng: random.Random) -> Block:
    """Forty samples around `us`, symmetric, so that the median is exactly `us`."""
    noise = [abs(rng.gauss(0, 0.004)) for _ in range(20)]
    wall_us = [us * (1 + sign * size) for size in noise for sign in (1, -1)]
    device_us = [value * 0.95 for value in wall_us]
    return Block(**turn, order_index=order, shape=shape, wall_us=wall_us, device_us=device_us, pipelined_us=us * 0.93)


def sequence(turn: dict[str, Any], step_us: dict[str, float], offset: float, steps: Plan) -> SequenceRun:
    """The plan's steps at the spec's step times."""
    total_us = sum(step_us.get(f"{run.phase}/{run.padded_size}", 0.0) * run.count for run in steps.runs)
    return SequenceRun(**turn, sequence_s=total_us * offset / 1e6, num_steps=steps.num_steps, num_decode_steps=steps.num_decode_steps)


def records_of(
    specs: dict[str, Spec], factorials: dict[str, dict[str, str]], num_sets: int = 3, without: tuple[str, ...] = (), **choices: Any
) -> StudyRecords:
    """A study of these modes. `without` names records that are missing, as `load/compile`."""
    study = params(modes=list(specs), factorials=list(factorials), **choices)
    shapes = next(iter(specs.values())).step_us
    steps = plan(
        {int(shape.split("/")[1]): 100 for shape in shapes if shape.startswith("decode")},
        {int(shape.split("/")[1]): 20 for shape in shapes if shape.startswith("prefill")},
    )
    load = {mode: load_record(mode, spec, study) for mode, spec in specs.items()}
    load |= {mode: skipped("load", mode, LoadRecord) for mode in specs if f"load/{mode}" in without}
    return StudyRecords(
        params=study,
        environment=environment(),
        configs={mode: config(mode, spec) for mode, spec in specs.items()},
        factorials=factorials,
        plan=steps,
        warmup={mode: warmup_record(mode, spec) for mode, spec in specs.items()},
        capture={mode: capture_record(mode, spec) for mode, spec in specs.items()},
        load=load,
        correctness={mode: correctness_record(mode, spec) for mode, spec in specs.items()},
        steady_state={name: steady_state_record(name, cells, specs, num_sets, steps) for name, cells in factorials.items()},
    )


def environment() -> dict[str, Any]:
    """environment.json of a GPU machine."""
    supported = {"supported": True, "why": ""}
    return {
        "device": "cuda",
        "gpu": "NVIDIA H200",
        "gpu_memory_bytes": 150_754_820_096,
        "driver": "580.95.05",
        "cuda": "13.0",
        "torch": "2.13.0",
        "torch_cuda": "13.0",
        "triton": "3.5.0",
        "python": "3.12.3",
        "cpu": "Intel Xeon Platinum 8480C",
        "cores": 16,
        "platform": "Linux-6.8-x86_64",
        "num_threads": 1,
        "support": {"partition": supported, "trees_across_threads": {"supported": False, "why": "one container a thread"}},
    }


def config(mode: str, spec: Spec) -> dict[str, Any]:
    """config/<mode>.yaml, the parts that analysis reads."""
    return {
        "name": "hand-made",
        "model": load_yaml(ROOT / "conf" / "model" / "llama_1b.yaml"),
        "mode": {
            "_target_": "stages.modes.eager.Eager",
            "name": mode,
            "family": "torch",
            "transform": spec.transform,
            "replay": spec.replay,
            "documented_at": "https://docs.pytorch.org/docs/stable/notes/cuda.html",
            "stability": "public",
            "configuration": f"# how to run {mode}\nstep = make_step('{mode}')",
        },
        "precision": "bf16",
    }


def times(decode_1: float, decode_8: float, prefill_512: float) -> dict[str, float]:
    """Step times in us at the example's shapes."""
    return {"decode/1": decode_1, "decode/8": decode_8, "prefill/512": prefill_512}


@cache
def example_records() -> StudyRecords:
    """Eight modes on a GPU: one refuted, one wrong, one unavailable; the numbers lean on a 1.24 B decoder on an H200."""
    served = {"0.5": 0.5, "2": 2.0}
    specs = {
        "eager": Spec(times(13400, 13900, 15200), 2010, cold_s=(6.1, 6.4, 6.2), warm_s=(6.0, 6.1, 6.2), tpot_ms=14.1, noise=0.02),
        "compile": Spec(
            times(7500, 7300, 9100), 1060, "inductor", cold_s=(47.0, 46.1, 48.8), warm_s=(14.0, 13.8, 14.4), artifact_s=(15.2, 15.0, 15.9)
        ),
        "cuda_graph": Spec(times(2590, 3070, 9000), 2010, "none", "manual", (7.4, 7.3, 7.6), (7.2, 7.3, 7.4), tpot_ms=3.1),
        "compile_cuda_graph": Spec(
            times(1290, 1320, 5200), 1060, "inductor", "manual", (48.2, 47.7, 49.9), (15.1, 14.8, 15.5), (16.4, 16.0, 16.9), tpot_ms=1.5
        ),
        "dynamo": Spec(
            times(13100, 13300, 15000), 2010, "dynamo", cold_s=(12.0, 12.3, 12.1), warm_s=(12.1, 12.0, 12.2), tpot_ms=13.8, noise=0.02
        ),
        "cudagraph_trees": Spec(
            times(1900, 2000, 5600),
            1060,
            "inductor",
            "trees",
            (47.0, 48.0, 48.5),
            (15.0, 15.3, 15.6),
            tpot_ms=2.1,
            verdict="refuted",
            evidence_reasons=("0 replays in 2,000 steps: skipping cudagraphs due to mutated inputs (32 instances)",),
        ),
        "max_autotune_cuda_graph": Spec(
            times(1180, 1250, 5000),
            960,
            "inductor_autotune",
            "manual",
            (412.0, 398.0, 420.0),
            (16.0, 16.3, 16.6),
            tpot_ms=1.4,
            correctness="wrong",
        ),
        "max_autotune": Spec({}, status="unavailable", reason="CUDAGraph Trees need a device with at least 68 SMs for max-autotune"),
    }
    saturated = {"eager": 4.0, "compile": 8.0, "cuda_graph": 16.0, "dynamo": 4.0}
    for mode, spec in specs.items():
        top = saturated.get(mode, 24.0)
        spec.goodput = served | {f"{top:g}": top, f"{top * 1.5:g}": top * 0.6}
        spec.attainment = {f"{top * 1.5:g}": 0.4}
    factorials = {
        "inductor_manual": {"E": "eager", "C": "compile", "R": "cuda_graph", "CR": "compile_cuda_graph", "dynamo": "dynamo"},
        "inductor_trees": {"E": "eager", "C": "compile", "R": "cuda_graph", "CR": "cudagraph_trees"},
    }
    return records_of(specs, factorials, arrival_rates=[2.0, 0.5], lifetimes_s=[10.0, 60.0, 600.0, 3600.0, 86400.0], name="example")


def write_example(path: Path) -> None:
    """Write the example's study.json."""
    records = example_records()
    ceilings = Ceilings(bandwidth_bytes_per_s=4.2e12, operations_per_s=7.0e14, l2_bytes=50e6)
    found = answers.answer(records, ceilings, lambda batch, context: Work(2.472e9 + batch * context * 32768, 2.47e9 * batch))
    atomic.write_json(path, study_document(records, found))


if __name__ == "__main__":
    write_example(ROOT / "tests" / "views" / "example_study.json")
