"""correctness: does the mode give the answers that eager gives, on calls that really are replays?

Probes (`stages/workers/probes`), each for one way in which captured or compiled inference goes wrong: logits against a
higher-precision reference, held outputs, padding, new weights, random numbers, tasks with known answers, and more.
Reads config/<mode>.yaml, trace/plan.json. Writes correctness/<mode>.json.

    python -m stages.correctness --mode compile
"""

from __future__ import annotations

import sys

from stages.core.composed import Settings
from stages.core.errors import run_command
from stages.core.partial import Partial
from stages.core.records.correctness import Answers, Check, CorrectnessRecord, ProbeRun
from stages.workers.measurement import Study, mode_command, worker

CHECKED = {"AOTI_RUNTIME_CHECK_INPUTS": "1"}  # AOTInductor packages then refuse an input that they were not built for


def measure(study: Study, settings: Settings, partial: Partial) -> Answers:
    """All checks of one mode."""
    options = settings.measure.correctness
    with worker(study, settings, "correctness", variables=CHECKED) as started:
        started.ready()
        found = started.ask(
            "stages.workers.checking:check",
            precision=settings.precision,
            baseline=settings.baseline,
            calls_per_shape=options.calls_per_shape,
            num_examples=options.num_examples,
            draw=settings.seed,
        )
    checks = [Check(**document) for document in found["checks"]]
    probes = [ProbeRun(**document) for document in found["probes"]]
    num_run = sum(probe.num_checks > 0 for probe in probes)
    sys.stdout.write(f"{num_run} of {len(probes)} probes executed, {len(checks)} checks\n")
    return Answers(verdict=verdict(checks), checks=checks, probes=probes, num_probes_run=num_run)


def verdict(checks: list[Check]) -> str:
    """`wrong` when any check failed, `not_checked` when none ran."""
    if any(check.verdict == "fail" for check in checks):
        return "wrong"
    return "correct" if any(check.verdict == "pass" for check in checks) else "not_checked"


def main() -> None:
    """Check one mode."""
    mode_command("correctness", __doc__, CorrectnessRecord, measure)


if __name__ == "__main__":
    run_command(main)
