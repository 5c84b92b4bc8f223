"""What tighter limits, or counting every completion, would choose: the same measurements judged by another rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from stages.analysis import services
from stages.analysis.reading import StudyRecords
from stages.analysis.wording import UNDECIDED, Table, at_rate, seconds
from stages.core.records.load import Load, LoadRecord, LoadRun
from stages.core.records.verdict import Choice
from stages.core.service_levels import best_met, meets

SHARES = (0.5, 0.2, 0.1, 0.05, 0.02)
NAMES = {"tpot_ms": "TPOT", "ttft_ms": "TTFT"}


def limits(records: StudyRecords, table: Table, choices: Callable[[StudyRecords], Table]) -> list[str]:
    """For each limit and arrival rate the widest tighter limit that names another mode, and for which lifetimes.

    `choices` gives the verdict's table of records. Saturation is left out: a tighter limit has another saturation, not measured.
    """
    unchanged = judged_by(records, "tpot_ms", records.params.slo.tpot_ms)  # the study's own limits, by its runs alone
    same = _same(table, choices(unchanged))
    return [line for limit in NAMES for line in _flips(records, limit, same, choices)]


def counting(records: StudyRecords, table: Table, most: Table) -> list[str]:
    """For each arrival rate what has the most completions where the verdict gave some of them up for a lower TPOT."""
    found = []
    for key in map(services.rate_key, records.params.arrival_rates):
        if changed := _changes(table, most, key):
            found.append(f"counting every completion, none given up for a lower TPOT, {at_rate(key)}: {_told(changed)}")
    return found


def _told(changed: dict[str, list[str]]) -> str:
    return "; ".join(f"{modes} for {', '.join(lifetimes)}" for modes, lifetimes in changed.items())


def _flips(records: StudyRecords, limit: str, table: Table, choices: Callable[[StudyRecords], Table]) -> Iterator[str]:
    """A line for each arrival rate at which a share of the limit names another mode."""
    given_ms = float(getattr(records.params.slo, limit))
    judged = {share * given_ms: choices(judged_by(records, limit, share * given_ms)) for share in SHARES}
    for key in map(services.rate_key, records.params.arrival_rates):
        widest = next((value_ms for value_ms, other in judged.items() if _changes(table, other, key)), None)
        if widest is not None:
            said = f"a {NAMES[limit]} limit of {widest:g} ms instead of {given_ms:g} ms {at_rate(key)}"
            yield f"{said}: {_told(_changes(table, judged[widest], key))}{_stalled(records, key)}"


def _same(table: Table, again: Table) -> dict[str, dict[str, Choice]]:
    """The choices that the runs give without the search too, which knows of the study's own limits only; others change by themselves."""
    return {
        lifetime: {
            rate: choice for rate, choice in rates.items() if (other := again.get(lifetime, {}).get(rate)) and other.mode == choice.mode
        }
        for lifetime, rates in table.items()
    }


def _stalled(records: StudyRecords, rate: str) -> str:
    """The modes whose one run at this rate noticed arrivals late: their tails may be a single stall of the process."""
    runs = {mode: services.run_at(record.data, rate) for mode, record in records.load.items() if record.data}
    late = [mode for mode, run in runs.items() if run and (run.lateness_share or 0.0) > services.MOST_LATE]
    return f" (one run each; arrivals were noticed late in that of {', '.join(late)})" if late else ""


def _changes(table: Table, other: Table, rate: str) -> dict[str, list[str]]:
    """`a instead of b` -> the lifetimes at which it is; what is undecided after is no change."""
    found: dict[str, list[str]] = {}
    for lifetime, rates in table.items():
        before, after = rates.get(rate), other.get(lifetime, {}).get(rate)
        if before and after and after.mode not in (UNDECIDED, before.mode):
            found.setdefault(f"{after.mode} instead of {before.mode}", []).append(seconds(float(lifetime)))
    return found


def judged_by(records: StudyRecords, limit: str, value_ms: float) -> StudyRecords:
    """The records as if this limit had been the study's: goodput and attainment of every run counted again from its requests."""
    return replace(records, load={mode: _judged_record(record, limit, value_ms) for mode, record in records.load.items()})


def _judged_record(record: LoadRecord, limit: str, value_ms: float) -> LoadRecord:
    return record.model_copy(update={"data": _judged(record.data, record.data.slo | {limit: value_ms})}) if record.data else record


def _judged(load: Load, slo: dict[str, float]) -> Load:
    runs = [_judged_run(run, slo) for run in load.runs]
    return load.model_copy(update={"slo": slo, "runs": runs, "search": [], **best_met(runs)})


def _judged_run(run: LoadRun, slo: dict[str, float]) -> LoadRun:
    good = sum(meets(request, slo) for request in run.requests)
    return run.model_copy(update={"request_goodput": good / run.window_s, "slo_attainment": good / max(1, len(run.requests))})
