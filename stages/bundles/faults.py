"""What is wrong with a mode, worst first: it failed, was refuted, answered wrong, or is slower than the baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stages.analysis import answers, eligibility, speedups, verdicts
from stages.analysis.reading import StudyRecords

FEWEST_STEPS, STEPS_AFTER_FIRST = 60, 20

Kind = Literal["failed", "refuted", "wrong", "slower"]


@dataclass(frozen=True)
class Fault:
    """`expected` and `seen` in sentences. `num_steps`: of the trace, that show it. `shape`: where a mode is slower."""

    kind: Kind
    expected: str
    seen: list[str]
    num_steps: int = FEWEST_STEPS
    shape: str = ""


def fault_of(records: StudyRecords, mode: str) -> Fault | None:
    """The worst fault of a mode; None for one that ran as claimed, answered right and is not slower."""
    return _failed(records, mode) or _refuted(records, mode) or _wrong(records, mode) or _slower(records, mode)


def _failed(records: StudyRecords, mode: str) -> Fault | None:
    broken = [record for record in records.of_mode(mode) if record.status == "failed"]
    seen = [f"{record.stage}: {record.reason}" for record in broken]
    return Fault("failed", "the mode starts and serves every step", [*seen, *(broken[0].log_tail[-5:])]) if broken else None


def _refuted(records: StudyRecords, mode: str) -> Fault | None:
    proof = records.capture[mode].data
    if proof is None or proof.evidence.verdict != "refuted":
        return None
    claim = proof.claim
    first = min((event.step for event in proof.evidence.events), default=0)
    num_steps = min(max(FEWEST_STEPS, first + STEPS_AFTER_FIRST), max(1, proof.steps_walked))
    expected = f"kernels by {claim['transform']}, replay {claim['replay']}, on every step"
    return Fault("refuted", expected, list(proof.evidence.reasons), num_steps)


def _wrong(records: StudyRecords, mode: str) -> Fault | None:
    data = records.correctness[mode].data
    if data is None or data.verdict != "wrong":
        return None
    return Fault("wrong", f"the answers of {records.baseline}, within its own error", [eligibility.failed_checks(records, mode)])


def _slower(records: StudyRecords, mode: str) -> Fault | None:
    """Where the comparison says so with its interval, at the point where the mode is slowest against the baseline."""
    used = speedups.used_factorials(records, verdicts.headline(records))
    times = {shape: found.vs_baseline for shape, found in answers.steady_state(used, mode).items()}
    slow = {shape: one.speedup for shape, one in times.items() if one and one.verdict == "slower" and one.speedup}
    if not slow:
        return None
    shape = min(slow, key=lambda name: slow[name])
    seen = [f"{name}: {speedup:.3f} times as fast as {records.baseline}" for name, speedup in sorted(slow.items())]
    return Fault("slower", f"a step at {shape} takes no longer than that of {records.baseline}", seen, shape=shape)
