"""diagnose: is it worth leaving eager? The bottleneck and the two ceilings, from eager alone, in at most a minute on a GPU.

Nothing is compiled or captured. Replay can save at most wall - busy, kernels at most busy - floor; where neither is
worth it the answer is `do not bother`. Reads params.yaml and conf/, writes nothing: the study in reports/latest stays.

    python -m stages.diagnose
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from stages.analysis import diagnosis, floors
from stages.analysis.bottleneck import words_for
from stages.core import atomic, paths
from stages.core.build import build
from stages.core.closed_output import run_printing_command
from stages.core.composed import Settings
from stages.core.errors import UserError
from stages.core.records.path import ProfiledStep
from stages.core.settings import BASELINE, params_file
from stages.core.typed_yaml import load_yaml
from stages.workers.measurement import Study, worker
from stages.workers.process import WorkerFailed

BUDGET_S = 30.0  # of measuring; spawning and loading come on top
PREPARED_BY = ("environment", "compose", "trace")
_PACKAGE_PARENT = Path(__file__).resolve().parents[1]


def prepare(folder: Path) -> Study:
    """A study of eager alone in `folder`, made by the stages that make every study. Raises UserError with what they said."""
    choices = dict(load_yaml(params_file())) | {"modes": [BASELINE], "factorials": []}
    atomic.write_text(folder / "params.yaml", OmegaConf.to_yaml(OmegaConf.create(choices)))
    places = {"OPMODE_STUDY": folder / "study", "OPMODE_BUILD": folder / "build", "OPMODE_PARAMS": folder / "params.yaml"}
    environment = os.environ | {name: str(place) for name, place in places.items()} | {"OPMODE_ROOT": str(paths.root())}
    for stage in PREPARED_BY:
        command = [sys.executable, "-m", f"stages.{stage}"]
        done = subprocess.run(command, cwd=_PACKAGE_PARENT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["no message"])[-1].removeprefix("error: ")
            raise UserError(f"diagnose ({stage})", "must be able to prepare a study of eager", said, "Fix that first.")
    return Study(folder / "study")


def measured(study: Study, settings: Settings) -> list[diagnosis.Point]:
    """Eager at the plan's shapes, those that take most steps first. Raises UserError when eager itself breaks."""
    counts = step_counts(study)
    order = sorted(counts, key=lambda shape: -counts[shape])
    context_tokens = study.plan.context_tokens // 2
    try:
        with study.on_device(), worker(study, settings, "diagnose") as started:
            started.ready()
            found = started.ask("stages.workers.diagnosing:diagnose", shapes=order, context_tokens=context_tokens, budget_s=BUDGET_S)
    except WorkerFailed as error:
        raise UserError("diagnose", "eager must run", error.reason, "Fix the model first.") from error
    profiles = {f"{one['phase']}/{one['size']}": ProfiledStep(**one) for one in found["profile"]}
    floor_us = floors_us(settings, found["ceilings"], order, context_tokens)
    walls: dict[str, float] = found["wall_us"]
    return [diagnosis.Point(counts[shape], wall_us, profiles[shape], floor_us.get(shape)) for shape, wall_us in walls.items()]


def step_counts(study: Study) -> Counter[str]:
    """The plan's steps by padded shape."""
    counts: Counter[str] = Counter()
    for run in study.plan.runs:
        counts[f"{run.phase}/{run.padded_size}"] += run.count
    return counts


def floors_us(settings: Settings, ceilings: dict[str, Any] | None, shapes: list[str], context_tokens: int) -> dict[str, float]:
    """The least time of each decode shape, where the device's ceilings were measured and its L2 does not hold the step."""
    if ceilings is None:
        return {}
    model = build(settings.model, "model")
    device = floors.Ceilings(ceilings["bandwidth_bytes_per_s"], ceilings["operations_per_s"], ceilings["l2_bytes"])
    found = {}
    for shape in shapes:
        phase, _, size = shape.partition("/")
        if phase == "decode":
            num_bytes = model.step_bytes(int(size), context_tokens, settings.precision)
            work = floors.Work(num_bytes, model.step_operations(int(size), context_tokens))
            found[shape] = floors.floor(work, device, None).floor_us
    return {shape: least for shape, least in found.items() if least is not None}


def main() -> None:
    """Print the diagnosis."""
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory(prefix="opmode-diagnose-") as folder:
        study = prepare(Path(folder))
        settings = study.settings(BASELINE)
        device = str(study.environment["device"])
        found = diagnosis.diagnosed(measured(study, settings), words_for(device), can_replay=device == "cuda")
    name = study.environment["gpu"] or study.environment["cpu"]
    sys.stdout.write(f"{settings.model['name']} in {settings.precision}, eager, on {name}\n")
    sys.stdout.write("\n".join(diagnosis.lines(found, device == "cuda")) + "\n")


if __name__ == "__main__":
    run_printing_command(main)
