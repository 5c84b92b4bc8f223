"""One factorial's answer: contrasts at every shape, for the sequence, and under the batch weights of plan and load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from stages.analysis import conditions, eligibility, host_following, winners
from stages.analysis import rotations as turns
from stages.analysis.contrasts import Point, contrasts
from stages.analysis.reading import StudyRecords
from stages.analysis.speed_shifts import speed_shift
from stages.core.records.answer import Contrasts, FactorialAnswer
from stages.core.records.path import ProfiledStep
from stages.core.records.steps import Rotations
from stages.core.records.winner import Winner

PLAN_WEIGHTED = "plan_weighted"
LOAD_WEIGHTED = "load_weighted"


def factorial_answer(records: StudyRecords, name: str) -> FactorialAnswer:
    """Contrasts and A/A pairs of one factorial; without data every point is absent and `cell_reasons` says why."""
    record = records.steady_state[name]
    if record.data is None:
        cells = dict(records.factorials[name])
        reason = f"{record.status}: {record.reason or 'no reason given'}"
        return FactorialAnswer(cells=cells, cell_reasons=dict.fromkeys(cells, reason), num_sets=0, points={}, twins=[])
    rotations = record.data
    objections = cell_objections(records, rotations)
    modes = {cell.cell: cell.mode for cell in rotations.cells}
    follows_host = host_following.by_point(rotations, objections)
    return FactorialAnswer(
        cells=modes,
        cell_reasons=objections,
        num_sets=rotations.num_sets,
        points=_points(records, rotations, objections),
        twins=turns.twins(rotations),
        winners=_winners(rotations, objections),
        conditions=conditions.sentences(rotations) + host_following.sentence(follows_host[turns.SEQUENCE], modes),
        speed_shift=speed_shift(rotations),
        follows_host=follows_host,
    )


def _winners(rotations: Rotations, objections: Mapping[str, str]) -> dict[str, Winner]:
    usable = [cell.cell for cell in rotations.cells if cell.cell not in objections]
    found = {point: winners.winner(rotations, point, usable) for point in [*turns.shapes(rotations), turns.SEQUENCE]}
    return {point: one for point, one in found.items() if one}


def cell_objections(records: StudyRecords, rotations: Rotations) -> dict[str, str]:
    """Why a cell gets no gain: what became of it in the rotation, or its mode's evidence and answers."""
    found = {}
    for cell in rotations.cells:
        if cell.status != "ok":
            found[cell.cell] = f"{cell.mode}: {cell.status}: {cell.reason or 'no reason given'}"
        elif cell.mode not in records.capture:
            found[cell.cell] = f"{cell.mode}: not a mode of this study"
        elif reason := eligibility.objection(records, cell.mode):
            found[cell.cell] = f"{cell.mode}: {reason}"
    return found


def _points(records: StudyRecords, rotations: Rotations, objections: Mapping[str, str]) -> dict[str, Contrasts]:
    single = {cell: reason for cell, reason in objections.items() if not turns.is_twin(cell)}
    shapes = turns.shapes(rotations)
    points = [Point(shape, turns.values_at(rotations, shape), single, _profiles(records, rotations, shape)) for shape in shapes]
    confounds = _confounds(points)
    points.append(Point(turns.SEQUENCE, turns.values_at(rotations, turns.SEQUENCE), single | confounds, {}))
    for name, counts in ((PLAN_WEIGHTED, plan_counts(records)), (LOAD_WEIGHTED, load_counts(records))):
        weights = shape_weights(counts, shapes)
        if weights:
            points.append(Point(name, turns.weighted(rotations, weights), single | confounds, {}))
    return {point.name: contrasts(point) for point in points if point.values}


def _confounds(points: list[Point]) -> dict[str, str]:
    """Confounds at any shape hold for every point that sums over shapes."""
    found: dict[str, str] = {}
    for point in points:
        for text in contrasts(point).missing:
            cell, _, reason = text.partition(": ")
            if reason.startswith("attention kernels differ"):
                found.setdefault(cell, f"{reason} at {point.name}")
    return found


def _profiles(records: StudyRecords, rotations: Rotations, shape: str) -> dict[str, ProfiledStep]:
    found = {}
    for cell in rotations.cells:
        capture = records.capture.get(cell.mode)
        if capture is None or capture.data is None or turns.is_twin(cell.cell):
            continue
        for profile in capture.data.profile:
            if f"{profile.phase}/{profile.size}" == shape:
                found[cell.cell] = profile
    return found


def plan_counts(records: StudyRecords) -> Counter[int]:
    """Decode steps of the plan by padded size."""
    counts: Counter[int] = Counter()
    for run in records.plan.runs:
        if run.phase == "decode":
            counts[run.padded_size] += run.count
    return counts


def load_counts(records: StudyRecords) -> Counter[int]:
    """Decode steps of the baseline under load by padded size, all rates together."""
    counts: Counter[int] = Counter()
    data = records.load[records.baseline].data
    for run in data.runs if data else []:
        for size, count in run.batch_histogram.items():
            counts[min((planned for planned in records.plan.capture_sizes if planned >= int(size)), default=int(size))] += count
    return counts


def shape_weights(counts: Mapping[int, int], shapes: list[str]) -> dict[str, float]:
    """Weights over the decode shapes that were timed, summing to 1; empty unless every counted size was timed."""
    sizes = [size for size, count in counts.items() if count]
    if not sizes or any(f"decode/{size}" not in shapes for size in sizes):
        return {}
    total = sum(counts[size] for size in sizes)
    return {f"decode/{size}": counts[size] / total for size in sorted(sizes)}
