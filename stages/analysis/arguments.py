"""What speaks for the verdict, what limits it, and what would change it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

from stages.analysis import speedups
from stages.analysis.reading import StudyRecords
from stages.analysis.wording import Table, at_rate, seconds
from stages.core.records.answer import Bottleneck, Contrasts, FactorialAnswer, ModeAnswer


def reasons(
    records: StudyRecords, answers: Mapping[str, ModeAnswer], joined: Mapping[str, FactorialAnswer], headline: str, shorter: str
) -> list[str]:
    """Why: the baseline's bottleneck, what kernels and replay save, the recommended mode's speed-up, also over that of shorter lives."""
    entry = dominant_bottleneck(records, answers[records.baseline])
    found = [f"{records.baseline}: {entry.sentence}"] if entry else []
    sequence = answers[headline].sequence if headline in answers else None
    versus = sequence.vs_baseline if sequence else None
    saved = {name: _saved(name, factorial.points["sequence"]) for name, factorial in joined.items() if "sequence" in factorial.points}
    found += saved.get(versus.factorial, []) if versus else next((lines for lines in saved.values() if lines), [])
    if versus:
        beside = f"{versus.verdict}, {versus.factorial}"
        found.append(f"{headline} runs the step sequence {versus.speedup:.2f} times as fast as {records.baseline} ({beside})")
    pair = speedups.over(records, headline, shorter) if shorter not in ("", records.baseline) else None
    if pair:
        around = f" [{pair.low:.2f}, {pair.high:.2f}]" if pair.low is not None and pair.high is not None else ""
        found.append(f"and {pair.speedup:.2f}{around} times as fast as {shorter} ({pair.verdict}, {pair.factorial})")
    return found


def dominant_bottleneck(records: StudyRecords, found: ModeAnswer) -> Bottleneck | None:
    """The bottleneck of the shape that takes the most time in the plan: steps times wall time."""
    counts: Counter[str] = Counter()
    for run in records.plan.runs:
        counts[f"{run.phase}/{run.padded_size}"] += run.count
    shapes = [shape for shape in found.bottleneck if counts[shape]]
    return found.bottleneck[max(shapes, key=lambda shape: counts[shape] * found.bottleneck[shape].wall_us)] if shapes else None


def _saved(name: str, point: Contrasts) -> list[str]:
    if not (point.total and point.compiled_alone and point.replay_alone and point.interaction):
        return []
    compiled, replay, interaction, total = (
        entry.value / 1e3 for entry in (point.compiled_alone, point.replay_alone, point.interaction, point.total)
    )
    return [
        f"{name}, over the step sequence: compiling alone saves {compiled:,.0f} ms, replay alone {replay:,.0f} ms, "
        f"both {total:,.0f} ms; {interaction:,.0f} ms would be counted twice"
    ]


def would_flip(rejected: Mapping[str, str], cold: Table, warm: Table) -> list[str]:
    """Changes of lifetime, rate, cache state or evidence that would change the recommendation."""
    found = _switches(cold)
    for lifetime, choices in cold.items():
        for rate, choice in choices.items():
            other = warm.get(lifetime, {}).get(rate)
            if other and other.mode != choice.mode:
                found.append(f"warm caches {at_rate(rate)} for {seconds(float(lifetime))}: {other.mode} instead of {choice.mode}")
    claims = ("refuted", "not_proven", "wrong", "not_checked")
    found += [f"{mode} would be considered once this is fixed: {reason}" for mode, reason in rejected.items() if reason.startswith(claims)]
    return found


def _switches(table: Table) -> list[str]:
    lifetimes = sorted(table, key=float)
    found = []
    for shorter, longer in pairwise(lifetimes):
        for rate, choice in table[longer].items():
            before = table[shorter].get(rate)
            if before and before.mode != choice.mode:
                found.append(
                    f"a lifetime of {seconds(float(shorter))} instead of {seconds(float(longer))} {at_rate(rate)}: "
                    f"{before.mode} instead of {choice.mode}"
                )
    return found
