"""What the report says after its first screen, in order, for the page and the Markdown alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stages.views import bundles, words
from stages.views.document import Study, dig, part
from stages.views.drawing import Drawn
from stages.views.tables import (
    broken,
    coverage,
    first_calls,
    gains,
    load_detail,
    machine,
    modes,
    proof,
    replay,
    rivals,
    served,
    service,
    several,
    standing,
    starts,
    steps,
)
from stages.views.tables.table import Table


@dataclass(frozen=True)
class Section:
    """A heading with lists, figures and tables. `commands` measure its numbers again."""

    key: str
    title: str
    lead: str
    points: Sequence[str]
    figures: Sequence[Drawn]
    tables: Sequence[Table]
    commands: Sequence[str]


@dataclass(frozen=True)
class _Plan:
    key: str
    title: str
    lead: str = ""
    figures: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()


NSYS = "nsys profile --trace=cuda,nvtx --cuda-graph-trace=node --output=build/nsys/<mode> python -m stages.ranges --mode <mode>"
_PLANS = (
    _Plan("choices", "What to run", commands=("dvc repro attribution", "python -m stages.attribution")),
    _Plan("flip", "What would flip it"),
    _Plan("scope", "What it holds for"),
    _Plan("rejected", "Not ranked: refuted, wrong, failed or unavailable"),
    _Plan("modes", "All modes", figures=("pareto",), commands=("dvc repro report", "python -m stages.report")),
    _Plan("paths", "Path proved", figures=("coverage", "churn"), commands=("python -m stages.capture --mode <mode>", NSYS)),
    _Plan(
        "attribution",
        "Where the time goes",
        "A factorial crosses compiling with replaying: E is eager, C compiled, R replayed, CR both."
        " A set is a fresh process of each, timed in turn.",
        figures=("waterfall",),
        commands=("python -m stages.steady_state --factorial <factorial>", "python -m stages.attribution"),
    ),
    _Plan("startup", "Start-up", figures=("ladder", "fleet"), commands=("python -m stages.warmup --mode <mode>",)),
    _Plan("latency", "Latency and load", figures=("latency", "goodput"), commands=("python -m stages.load --mode <mode>",)),
    _Plan("memory", "Memory", figures=("memory",), commands=("python -m stages.capture --mode <mode>",)),
    _Plan("correctness", "Answers checked", commands=("python -m stages.correctness --mode <mode>",)),
    _Plan("machine", "Machine and environment", commands=("python -m stages.environment", "python -m stages.trace")),
)


def sections(study: Study, drawn: Mapping[str, Drawn]) -> list[Section]:
    """All sections that have something to say."""
    tables, points = _tables(study), _points(study)
    found = []
    for plan in _PLANS:
        figures = [drawn[name] for name in plan.figures if name in drawn]
        filled = [table for table in tables.get(plan.key, []) if table.rows]
        if figures or filled or points.get(plan.key):
            found.append(Section(plan.key, plan.title, plan.lead, points.get(plan.key, []), figures, filled, plan.commands))
    return found


def reproduction(study: Study) -> list[str]:
    """The study's own list of commands."""
    return [words.clean(dig(entry, "command") or entry) for entry in dig(study, "commands") or []]


def _tables(study: Study) -> dict[str, list[Table]]:
    return {
        "choices": [modes.recommended(study), several.along_a_life(study), modes.break_even(study), rivals.next_best(study)],
        "rejected": [modes.not_ranked(study), broken.broken_records(study)],
        "modes": [modes.summary(study)],
        "paths": [proof.paths(study), coverage.shares(study), coverage.churn(study), coverage.advice(study)],
        "attribution": [
            gains.ceilings(study),
            standing.winners(study),
            standing.heats(study),
            several.repeats(study),
            steps.attribution(study),
            gains.reconciled(study),
            steps.sequence(study),
            steps.bottlenecks(study),
            replay.replay_cost(study),
            replay.kernel_table(study),
            steps.floors(study),
        ],
        "startup": [
            service.startup(study),
            first_calls.first_calls(study),
            starts.replaced(study),
            starts.middle_way(study),
            starts.by_start(study),
            first_calls.beside(study),
        ],
        "latency": [
            steps.step_times(study),
            service.load(study),
            load_detail.requests(study),
            load_detail.costs(study),
            load_detail.queues(study),
            load_detail.search(study),
            load_detail.hits(study),
        ],
        "memory": [service.memory(study), coverage.graphs(study), load_detail.memory_along(study)],
        "correctness": [proof.probes(study), served.answers(study), proof.correctness(study)],
        "machine": [
            proof.quiet(study),
            standing.stopping(study),
            machine.model(study),
            machine.trace(study),
            machine.environment(study),
            machine.support(study),
        ],
    }


def _points(study: Study) -> dict[str, list[str]]:
    verdict, factorials = study["verdict"], sorted(part(study, "attribution").items())
    return {
        "choices": [words.clean(reason) for reason in verdict.get("reasons") or []],
        "rejected": bundles.of_faults(study),
        "modes": [*standing.direct(study), *bundles.of_slower(study)],
        "attribution": [*gains.products(study), *_missing_cells(factorials), *steps.no_floor(study)],
        "latency": [*load_detail.cache_binds(study), *load_detail.self_check(study), *load_detail.collections(study)],
        "machine": [*standing.conditions(study), *_voided(factorials)],
        "flip": [words.clean(text) for text in verdict.get("would_flip") or []],
        "scope": [words.clean(text) for text in verdict.get("caveats") or []],
        "startup": service.unproved(study),
    }


def _voided(factorials: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    return [f"{name}, not counted: {words.clean(text)}" for name, found in factorials for text in dig(found, "voided") or []]


def _missing_cells(factorials: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    """Cells without a result, those with one reason together."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, answer in factorials:
        for cell, reason in sorted(part(answer, "cell_reasons").items()):
            if reason:
                found.setdefault((name, str(reason)), []).append(cell)
    return [
        words.clean(f"{name}, {'cell' if len(cells) == 1 else 'cells'} {', '.join(cells)}: {reason}")
        for (name, reason), cells in found.items()
    ]
