"""Why a mode gets no credit: not confirmed, wrong, failed, unavailable. No gain is attributed to such a mode."""

from __future__ import annotations

from stages.analysis import services
from stages.analysis.reading import StudyRecords
from stages.analysis.served_answers import wrong_answers


def objection(records: StudyRecords, mode: str) -> str:
    """Why no gain may be attributed to a mode, or an empty string: its path must be confirmed, its answers not wrong.

    A mode that broke while its answers were checked has none that can be called right.
    """
    capture, correctness = records.capture[mode], records.correctness[mode]
    if capture.data is None:
        return f"{capture.status}: capture: {capture.reason or 'no reason given'}"
    evidence = capture.data.evidence
    if evidence.verdict != "confirmed":
        return f"{evidence.verdict}: {'; '.join(evidence.reasons) or 'no reason given'}"
    if correctness.status == "failed":
        return f"failed: correctness: {correctness.reason or 'no reason given'}"
    if correctness.data is not None and correctness.data.verdict == "wrong":
        return f"wrong: {failed_checks(records, mode)}"
    served = wrong_answers(records, mode)
    return f"wrong: {served}" if served else ""


def failed_checks(records: StudyRecords, mode: str) -> str:
    """The checks that a mode failed, in words."""
    data = records.correctness[mode].data
    failed = [check for check in data.checks if check.verdict == "fail"] if data else []
    return "; ".join(
        f"{check.name} on {check.subject} failed ({check.reason or f'{check.value} against a limit of {check.limit}'})" for check in failed
    )


def rejection(records: StudyRecords, mode: str) -> str:
    """Why a mode is not recommended, or an empty string. The baseline needs only to have run."""
    for record in records.of_mode(mode):
        if record.status in ("failed", "unavailable"):
            return f"{record.status}: {record.stage}: {record.reason or 'no reason given'}"
    if mode != records.baseline:
        reason = objection(records, mode) or _unchecked(records, mode)
        if reason:
            return reason
    missing = [record for record in (records.warmup[mode], records.load[mode]) if record.data is None]
    if missing:
        return f"skipped: {missing[0].stage}: {missing[0].reason}"
    return _unstarted(records, mode)


def _unstarted(records: StudyRecords, mode: str) -> str:
    startup = records.warmup[mode].data
    return "" if startup and services.starts(startup, "cold") else "not_proven: warmup: no start was proved to be cold"


def _unchecked(records: StudyRecords, mode: str) -> str:
    record = records.correctness[mode]
    if record.data is None:
        return f"{record.status}: correctness: {record.reason}"
    return "" if record.data.verdict == "correct" else "not_checked: its answers were not compared with the baseline's"
