"""The recommendation for each lifetime and arrival rate, and what speaks for and against it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stages.analysis import arguments, caveats, eligibility, other_rules, parsimony, services, spans, wording
from stages.analysis.candidates import Candidate, candidates_at, equal, measurably_lower, tpot_ms
from stages.analysis.lifetimes import EQUAL_SHARE
from stages.analysis.reading import StudyRecords
from stages.analysis.wording import UNDECIDED
from stages.core.records.answer import FactorialAnswer, ModeAnswer
from stages.core.records.verdict import Choice, Verdict

CACHE = "cold"


def verdict(records: StudyRecords, answers: Mapping[str, ModeAnswer], joined: Mapping[str, FactorialAnswer]) -> Verdict:
    """The study's verdict from cold caches; a mode that is not confirmed, wrong, failed or unavailable is never recommended."""
    rejected = _rejected(records)
    eligible = _eligible(records, rejected)
    recommended = _table(records, eligible, CACHE)
    name = wording.headline_mode(recommended, records)
    along = spans.all_spans(records, eligible, choose)
    stays = name == UNDECIDED and _stays(records, answers, rejected, recommended, along)
    shown, shorter = (records.baseline, "") if stays else (name, spans.shorter(along, recommended, name))
    return Verdict(
        sentence=wording.staying(records, recommended) if stays else wording.sentence(records, answers, recommended, along),
        recommended=recommended,
        reasons=arguments.reasons(records, answers, joined, name, shorter),
        caveats=caveats.caveats(records),
        would_flip=[
            *arguments.would_flip(rejected, recommended, _table(records, eligible, "warm")),
            *other_rules.counting(records, recommended, _table(records, eligible, CACHE, most)),
            *other_rules.limits(records, recommended, lambda judged: _table(judged, eligible, CACHE)),
        ],
        rejected=rejected,
        configuration=wording.configuration(records, shown),
        spans=along,
        shorter=shorter,
        configurations=wording.configurations(records, [shown, shorter, wording.runner_up(recommended)]),
    )


def _stays(
    records: StudyRecords, answers: Mapping[str, ModeAnswer], rejected: Mapping[str, str], table: wording.Table, along: wording.Spans
) -> bool:
    """Whether an undecided headline leaves the baseline as the one to run: see `parsimony`."""
    if not table or not parsimony.is_never_left(table, along, records.baseline):
        return False
    longest = max(table, key=float)
    found = candidates_at(records, _eligible(records, rejected), next(iter(table[longest])), CACHE)(float(longest))
    return parsimony.stays(records, answers, rejected, found)


def headline(records: StudyRecords) -> str:
    """The mode of the verdict's sentence, or `undecided`. It rests on starts and load alone, not on step times."""
    return wording.headline_mode(_table(records, _eligible(records, _rejected(records)), CACHE), records)


def _rejected(records: StudyRecords) -> dict[str, str]:
    return {mode: reason for mode in records.modes if (reason := eligibility.rejection(records, mode))}


def _eligible(records: StudyRecords, rejected: Mapping[str, str]) -> list[str]:
    return [mode for mode in records.modes if mode not in rejected]


def _table(records: StudyRecords, eligible: Sequence[str], cache: str, rule: spans.Choose | None = None) -> dict[str, dict[str, Choice]]:
    at = {rate: candidates_at(records, eligible, rate, cache) for rate in services.verdict_rates(records.params)}
    table: dict[str, dict[str, Choice]] = {}
    for lifetime_s in records.params.lifetimes_s:
        choices = {rate: (rule or choose)(found(lifetime_s)) for rate, found in at.items()}
        table[f"{lifetime_s:g}"] = {rate: choice for rate, choice in choices.items() if choice}
    return {lifetime: choices for lifetime, choices in table.items() if choices}


def choose(found: list[Candidate]) -> Choice | None:
    """The mode with the most completions; among equal ones the lowest p99 TPOT, else `undecided`. None without candidates.

    Modes whose most is not known (no rate tried was too much for them) are not told apart by completions.
    """
    if not found:
        return None
    ranked = sorted(found, key=lambda candidate: -candidate.completions)
    first = ranked[0]
    if first.completions <= 0:  # what a lucky start of another mode might have served ranks nothing
        return _choice(UNDECIDED, first, None, "no mode is ready within this lifetime, or none meets the limits at this rate")
    tied = [candidate for candidate in ranked if equal(first, candidate)]
    if len(tied) == 1:
        second = ranked[1] if len(ranked) > 1 else None
        reason = "most useful completions" if second else "the only mode that may be recommended"
        return _choice(first.mode, first, second, reason)
    unbounded = [candidate.mode for candidate in tied if candidate.high == float("inf")]
    if unbounded:
        reason = f"no rate tried was too much for {', '.join(unbounded)}: what saturates them is not known"
        return _choice(UNDECIDED, first, tied[1], reason)
    return _by_tpot(tied, ranked)


def most(found: list[Candidate]) -> Choice | None:
    """The mode with the most completions, by however few; None where none has any, or one's most is not known."""
    ranked = sorted(found, key=lambda candidate: -candidate.completions)
    if not ranked or ranked[0].completions <= 0 or any(candidate.high == float("inf") for candidate in ranked):
        return None
    return _choice(ranked[0].mode, ranked[0], ranked[1] if len(ranked) > 1 else None, "most useful completions")


def _by_tpot(tied: list[Candidate], ranked: list[Candidate]) -> Choice:
    names = ", ".join(candidate.mode for candidate in tied)
    tail, known = tpot_ms(tied)
    if len(known) < len(tied):
        return _choice(UNDECIDED, tied[0], tied[1], f"completions of {names} are not told apart, and there is no TPOT to rank them by")
    tied = sorted(tied, key=lambda candidate: known[candidate.mode])
    first, second = tied[0], tied[1]
    name = f"{tail} TPOT"
    shown = f"{name} decides: {known[first.mode]:.3g} ms against {known[second.mode]:.3g} ms of {second.mode}"
    if not measurably_lower(known[first.mode], known[second.mode]):
        reason = f"completions of {names} are not told apart, nor does {name} separate {first.mode} and {second.mode}"
        return _choice(UNDECIDED, first, second, reason)
    close = abs(first.completions - second.completions) <= EQUAL_SHARE * max(first.completions, second.completions)
    completions = (
        f"completions within {100 * EQUAL_SHARE:g} %"
        if close
        else f"completions not told apart ({first.completions:,.0f}, {second.completions:,.0f})"
    )
    return _choice(first.mode, first, second, f"{completions}, {shown}")


def _choice(mode: str, first: Candidate, second: Candidate | None, reason: str) -> Choice:
    return Choice(
        mode=mode,
        runner_up=second.mode if second else None,
        completions=first.completions,
        runner_up_completions=second.completions if second else None,
        reason=reason,
    )
