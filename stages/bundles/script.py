"""The text of reproduce.py: constants of one mode, and the few lines that show its fault."""

from __future__ import annotations

from pprint import pformat
from typing import Any

from stages.bundles.faults import Fault, Kind

_HEAD = '''"""{title}

Expected: {expected}
Seen:
{seen}

    python reproduce.py                        exit status 1: the fault is there; 0: it is not
    python reproduce.py --profile profile.json    torch's profiler over three calls of every shape instead

Needs the packages of requirements.txt. The model, the mode and what drives them lie in code/.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "code"))
os.environ["OPMODE_ROOT"] = str(HERE / "code")
os.environ.setdefault("OMP_NUM_THREADS", "{threads}")
CACHES = Path(tempfile.mkdtemp(prefix="reproduce-"))
os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(CACHES / "inductor"))
os.environ.setdefault("TRITON_CACHE_DIR", str(CACHES / "triton"))

from stages.instruments import assembler

os.environ.update(assembler.variables())

SETTINGS: dict[str, Any] = {settings}
PLAN: dict[str, Any] = {plan}
REQUESTS: list[dict[str, Any]] = {requests}
NUM_STEPS = {num_steps}
SHAPE = "{shape}"


def start(proof: bool) -> Any:
    """The service in the mode, every planned shape ready."""
    from stages.workers.starting import start_service

    order = {{"settings": SETTINGS, "plan": PLAN, "proof": proof, "artifact": None, "spawned_s": time.monotonic()}}
    return start_service(order)[0]

'''

_BODIES: dict[Kind, str] = {
    "failed": '''
def shows_fault() -> bool:
    """Start and serve the first steps; an exception is the fault."""
    from stages.workers.walking import walk

    try:
        walk(start(proof=True), REQUESTS, NUM_STEPS, SETTINGS["measure"]["plan"])
    except Exception:
        traceback.print_exc()
        return True
    return False
''',
    "refuted": '''
def shows_fault() -> bool:
    """Serve the first steps with counters on torch's classes, profile some calls, and judge the claim."""
    from stages.core.records.path import PathRun, ProfiledStep
    from stages.workers.evidence import judge
    from stages.workers.profiling import profile_shapes
    from stages.workers.walking import walk

    service = start(proof=True)
    walked = walk(service, REQUESTS, NUM_STEPS, SETTINGS["measure"]["plan"])
    runs = [PathRun(**run) for run in walked["path_runs"]]
    profile = [ProfiledStep(**step) for step in profile_shapes(service, 3)]
    evidence = judge(SETTINGS["mode"], walked, runs, profile, SETTINGS["device"])
    print(f"{evidence.verdict}: {evidence.path_counts}")
    print(*evidence.reasons, sep="\\n")
    return evidence.verdict == "refuted"
''',
    "wrong": '''
def shows_fault() -> bool:
    """Compare with eager and with a reference in higher precision, by every probe."""
    from stages.workers.checking import check

    options = SETTINGS["measure"]["correctness"]
    numbers = {key: options[key] for key in ("calls_per_shape", "num_examples")}
    found = check(start(proof=False), SETTINGS["precision"], SETTINGS["baseline"], **numbers)["checks"]
    failed = [one for one in found if one["verdict"] == "fail"]
    for one in failed:
        print(f"{one['name']} on {one['subject']}: {one.get('value')} against a limit of {one.get('limit')} {one.get('reason', '')}")
    return bool(failed)
''',
    "slower": '''
def shows_fault() -> bool:
    """Blocks of the mode and of the baseline on the same weights, taking turns; the medians of all synchronised calls."""
    from statistics import median

    from stages.core.build import build
    from stages.workers.service import Service
    from stages.workers.timing import time_block

    service = start(proof=False)
    baseline = build(SETTINGS["baseline"], "mode")
    eager = Service(service.module, service.model, baseline, service.plan, SETTINGS["device"], SETTINGS["precision"])
    eager.instruments = {"phases": service.instruments["phases"]}
    times: dict[str, list[float]] = {"mode": [], "baseline": []}
    for turn in range(10):
        for name, one in (("mode", service), ("baseline", eager)):
            block = time_block(one, SHAPE, 20, 5, service.plan.context_tokens // 2)
            times[name] += block["wall_us"] if turn else []
    ratio = median(times["baseline"]) / median(times["mode"])
    print(f"{SHAPE}: mode {median(times['mode']):.1f} us, baseline {median(times['baseline']):.1f} us: {ratio:.3f} times as fast")
    return ratio < 1
''',
}

_TAIL = '''

def write_profile(file: Path) -> None:
    """A Chrome trace of three calls of every shape, after warm-up."""
    import torch
    from torch.profiler import ProfilerActivity, profile, record_function

    service = start(proof=False)
    activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if SETTINGS["device"] == "cuda" else [])
    service.fill(service.plan.context_tokens // 2, torch.Generator().manual_seed(0))
    with profile(activities=activities) as session:
        for shape in service.shapes():
            for _ in range(3):
                with record_function(shape):
                    service.run(shape)
                    service.synchronize()
    session.export_chrome_trace(str(file))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", type=Path, metavar="FILE")
    options = parser.parse_args()
    if options.profile:
        write_profile(options.profile)
        return 0
    there = shows_fault()
    print("the fault is there" if there else "the fault is not there")
    return int(there)


if __name__ == "__main__":
    sys.exit(main())
'''


def script(title: str, fault: Fault, settings: dict[str, Any], plan: dict[str, Any], requests: list[dict[str, Any]]) -> str:
    """The whole file. `settings`, `plan` and `requests` are JSON-like."""
    shown = {
        "title": _plain(title),
        "expected": _plain(fault.expected),
        "seen": "\n".join(f"    {_plain(text)}" for text in fault.seen),
        "threads": settings["launch"]["num_threads"],
        "settings": pformat(settings, width=120, sort_dicts=False),
        "plan": pformat(plan, width=120, sort_dicts=False),
        "requests": pformat(requests, width=120, sort_dicts=False),
        "num_steps": fault.num_steps,
        "shape": fault.shape,
    }
    return _HEAD.format(**shown) + _BODIES[fault.kind] + _TAIL


def _plain(text: str) -> str:
    """A sentence that cannot end the docstring that it stands in."""
    return text.replace("\\", "/").replace('"""', "'''")
