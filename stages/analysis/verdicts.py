"""The recommendation for each lifetime and arrival rate, and what speaks for and against it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from stages.analysis import arguments, eligibility, lifetimes, services, wording
from stages.analysis.reading import StudyRecords
from stages.analysis.wording import UNDECIDED
from stages.core.records.answer import Choice, FactorialAnswer, ModeAnswer, Verdict

CACHE = "cold"
EQUAL_SHARE = 0.01
TPOT_SHARE = 0.05  # one load run a rate: smaller differences separate nothing


class Candidate(NamedTuple):
    """A mode that may be recommended, at one lifetime and rate: useful completions with their range, and its TPOT in ms."""

    mode: str
    completions: float
    low: float
    high: float
    tpot_p50_ms: float | None
    tpot_p99_ms: float | None


def verdict(records: StudyRecords, answers: Mapping[str, ModeAnswer], joined: Mapping[str, FactorialAnswer]) -> Verdict:
    """The study's verdict from cold caches; a mode that is not confirmed, wrong, failed or unavailable is never recommended."""
    rejected = {mode: reason for mode in records.modes if (reason := eligibility.rejection(records, mode))}
    eligible = [mode for mode in records.modes if mode not in rejected]
    recommended = _table(records, eligible, CACHE)
    headline = wording.headline_mode(recommended, records)
    return Verdict(
        sentence=wording.sentence(records, answers, recommended, headline),
        recommended=recommended,
        reasons=arguments.reasons(records, answers, joined, headline),
        caveats=arguments.caveats(records, answers, recommended),
        would_flip=arguments.would_flip(answers, rejected, recommended, _table(records, eligible, "warm")),
        rejected=rejected,
        configuration=wording.configuration(records, headline),
    )


def _table(records: StudyRecords, eligible: list[str], cache: str) -> dict[str, dict[str, Choice]]:
    rates = [*map(services.rate_key, records.params.arrival_rates), services.SATURATION]
    table: dict[str, dict[str, Choice]] = {}
    for lifetime_s in records.params.lifetimes_s:
        choices = {rate: choose(candidates(records, eligible, lifetime_s, rate, cache)) for rate in rates}
        table[f"{lifetime_s:g}"] = {rate: choice for rate, choice in choices.items() if choice}
    return {lifetime: choices for lifetime, choices in table.items() if choices}


def candidates(records: StudyRecords, eligible: list[str], lifetime_s: float, rate: str, cache: str) -> list[Candidate]:
    """Every eligible mode that was started from this cache state and offered this rate."""
    delivered = _delivered(records, eligible, rate, cache)
    best = max(delivered.values(), key=lambda corners: corners.point.goodput_per_s, default=None)
    found = []
    for mode, corners in delivered.items():
        load = records.load[mode].data
        assert load, "a mode that delivers was under load"
        assert best, "one of them delivers most"
        run = services.run_at(load, rate)
        counts = [lifetimes.completions(lifetime_s, service) for service in services.compared(corners, best, rate)[0][:3]]
        unbounded = rate == services.SATURATION and load.max_goodput_is_lower_bound and lifetime_s > corners.point.ready_s
        tpot = run.tpot_ms if run else None
        found.append(
            Candidate(
                mode=mode,
                completions=counts[0],
                low=min(counts),
                high=float("inf") if unbounded else max(counts),
                tpot_p50_ms=tpot.p50 if tpot else None,
                tpot_p99_ms=tpot.p99 if tpot else None,
            )
        )
    return found


def _delivered(records: StudyRecords, eligible: list[str], rate: str, cache: str) -> dict[str, lifetimes.Corners]:
    """What each mode delivers at this rate from this cache state, where both were measured."""
    measured = {mode: (records.warmup[mode].data, records.load[mode].data) for mode in eligible}
    found = {mode: services.corners(startup, load, rate, cache) for mode, (startup, load) in measured.items() if startup and load}
    return {mode: corners for mode, corners in found.items() if corners}


def choose(found: list[Candidate]) -> Choice | None:
    """The mode with the most completions; among equal ones the lowest p99 TPOT, else `undecided`. None without candidates.

    Modes whose most is not known (no rate tried was too much for them) are not told apart by completions.
    """
    if not found:
        return None
    ranked = sorted(found, key=lambda candidate: -candidate.completions)
    first = ranked[0]
    if first.high <= 0:
        return _choice(UNDECIDED, first, None, "no mode is ready within this lifetime, or none meets the limits at this rate")
    tied = [candidate for candidate in ranked if _equal(first, candidate)]
    if len(tied) == 1:
        second = ranked[1] if len(ranked) > 1 else None
        reason = "most useful completions" if second else "the only mode that may be recommended"
        return _choice(first.mode, first, second, reason)
    unbounded = [candidate.mode for candidate in tied if candidate.high == float("inf")]
    if unbounded:
        reason = f"no rate tried was too much for {', '.join(unbounded)}: what saturates them is not known"
        return _choice(UNDECIDED, first, tied[1], reason)
    return _by_tpot(tied, ranked)


def _equal(first: Candidate, other: Candidate) -> bool:
    return other.completions >= (1 - EQUAL_SHARE) * first.completions or other.high >= first.low


def _by_tpot(tied: list[Candidate], ranked: list[Candidate]) -> Choice:
    names = ", ".join(candidate.mode for candidate in tied)
    tail = all(candidate.tpot_p99_ms is not None for candidate in tied)
    times = {c.mode: (c.tpot_p99_ms if tail else c.tpot_p50_ms) for c in tied}
    known = {mode: value for mode, value in times.items() if value is not None}
    if len(known) < len(tied):
        return _choice(UNDECIDED, tied[0], tied[1], f"completions of {names} are not told apart, and there is no TPOT to rank them by")
    tied = sorted(tied, key=lambda candidate: known[candidate.mode])
    first, second = tied[0], tied[1]
    name = f"{'p99' if tail else 'p50'} TPOT"
    shown = f"{name} decides: {known[first.mode]:.3g} ms against {known[second.mode]:.3g} ms of {second.mode}"
    if known[second.mode] < (1 + TPOT_SHARE) * known[first.mode]:
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
