"""Staying with the baseline where everything was measured and nothing is better: a recommendation by parsimony.

`undecided` says that the measurements do not tell two modes apart. Where that holds between the baseline and each of the
others, a reader needs no more: a mode that is not better is not worth its start-up. It is named as such, and is said only
where no measurement is missing; the choices in the verdict's table stay `undecided`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stages.analysis.candidates import Candidate, equal, measurably_lower, tpot_ms
from stages.analysis.reading import StudyRecords
from stages.analysis.wording import UNDECIDED, Spans, Table
from stages.core.records.answer import ModeAnswer, VsBaseline

FINDINGS = ("unavailable", "refuted", "wrong")  # of such a mode no measurement is missing


def stays(records: StudyRecords, answers: Mapping[str, ModeAnswer], rejected: Mapping[str, str], found: Sequence[Candidate]) -> bool:
    """Whether the baseline is what is left. `found`: what each mode would serve in the longest life at the headline's rate."""
    others = [mode for mode in records.modes if mode != records.baseline and mode not in rejected]
    return (
        bool(others)
        and all(reason.startswith(FINDINGS) for reason in rejected.values())
        and {candidate.mode for candidate in found} == {records.baseline, *others}
        and _serves_no_less(found, records.baseline)
        and all(_is_no_faster(answers[mode]) for mode in others)
    )


def is_never_left(table: Table, along: Spans, baseline: str) -> bool:
    """Whether no choice at any lifetime and rate names another mode."""
    spans = [span.mode for caches in along.values() for found in caches.values() for span in found]
    return {*spans, *(choice.mode for choices in table.values() for choice in choices.values())} <= {baseline, UNDECIDED}


def _serves_no_less(found: Sequence[Candidate], baseline: str) -> bool:
    """Whether completions and TPOT of the baseline are those of the best, as far as they are told apart; all must be known."""
    own = next(candidate for candidate in found if candidate.mode == baseline)
    most = max(found, key=lambda candidate: candidate.completions)
    _, times = tpot_ms(found)
    known = len(times) == len(found) and all(candidate.high < float("inf") for candidate in found)
    return known and equal(most, own) and not measurably_lower(min(times.values()), times[baseline])


def _is_no_faster(answer: ModeAnswer) -> bool:
    """Whether the sequence was compared, and no factorial has an interval above 1 there or at any shape."""
    if not (answer.sequence and answer.sequence.vs_baseline):
        return False
    return not any(one.verdict == "faster" or (one.low is not None and one.low > 1) for one in _comparisons(answer))


def _comparisons(answer: ModeAnswer) -> Iterator[VsBaseline]:
    for times in [answer.sequence, *answer.steady_state.values()]:
        if times and times.vs_baseline:
            yield times.vs_baseline
    for repeat in answer.repeats.values():
        yield from repeat.speedups
