"""Speed-ups over the baseline, and which factorial's number is used where several timed the same pair."""

from __future__ import annotations

from dataclasses import replace

from stages.analysis import eligibility, statistics
from stages.analysis import rotations as turns
from stages.analysis.reading import StudyRecords
from stages.core.records.answer import Repeat, VsBaseline
from stages.core.records.steps import Rotations


def used_factorials(records: StudyRecords, recommended: str) -> StudyRecords:
    """The records with the factorials that hold the recommended mode first, each group in the order of params.yaml.

    A mode that several factorials timed takes its times and speed-ups from the first of them, so those that the verdict
    speaks of were measured beside the recommended mode wherever they were.
    """
    names = sorted(records.steady_state, key=lambda name: not _cells(records.steady_state[name].data, recommended))
    return replace(records, steady_state={name: records.steady_state[name] for name in names})


def _cells(data: Rotations | None, mode: str) -> list[str]:
    """Where one factorial timed a mode, its A/A twins among them."""
    return [cell.cell for cell in data.cells if cell.mode == mode and cell.status == "ok"] if data else []


def cells_of(records: StudyRecords, mode: str) -> list[tuple[Rotations, str]]:
    """Where a mode was timed: factorials in the order given, with its cell."""
    timed = [record.data for record in records.steady_state.values() if record.data]
    return [(data, cell) for data in timed for cell in _cells(data, mode) if not turns.is_twin(cell)]


def compared(records: StudyRecords, mode: str, rotations: Rotations, cell: str, point: str, against: str = "E") -> VsBaseline | None:
    """Speed-up over cell E (or another) at one point; None for that cell itself and for a mode that gets no credit."""
    others = [found.mode for found in rotations.cells if found.cell == against and found.mode in records.capture]
    if cell == against or any(eligibility.objection(records, name) for name in (*others, mode)):
        return None
    values = turns.values_at(rotations, point)
    ratio = turns.log_ratio(values, against, cell)
    if ratio is None:
        return None
    shown = statistics.exponentiated(ratio)
    verdict = statistics.classify(ratio, turns.margin_at(rotations, values))
    return VsBaseline(speedup=shown.value, low=shown.low, high=shown.high, verdict=verdict, factorial=rotations.factorial)


def over(records: StudyRecords, mode: str, other: str) -> VsBaseline | None:
    """Speed-up of a mode over another one on the step sequence, from the first factorial that timed both in turn."""
    against = {rotations.factorial: cell for rotations, cell in cells_of(records, other)}
    for rotations, cell in cells_of(records, mode):
        if rotations.factorial in against:
            return compared(records, mode, rotations, cell, turns.SEQUENCE, against[rotations.factorial])
    return None


def repeats(records: StudyRecords, mode: str) -> dict[str, Repeat]:
    """Points at which more than one factorial compared the mode with the baseline, the one used first."""
    found: dict[str, list[VsBaseline]] = {}
    for rotations, cell in cells_of(records, mode):
        for point in [*turns.shapes(rotations), turns.SEQUENCE]:
            versus = compared(records, mode, rotations, cell, point)
            if versus:
                found.setdefault(point, []).append(versus)
    return {point: Repeat(speedups=all_of, agree=_agree(all_of)) for point, all_of in found.items() if len(all_of) > 1}


def _agree(found: list[VsBaseline]) -> bool:
    """Whether all intervals overlap; where one has none, whether the ratios lie within what one set can tell."""
    ends = [(one.low, one.high) for one in found]
    if any(low is None or high is None for low, high in ends):
        ratios = [one.speedup for one in found]
        return max(ratios) <= (1 + statistics.ONE_SET_MARGIN) * min(ratios)
    return max(low for low, _ in ends if low is not None) <= min(high for _, high in ends if high is not None)
