"""Answers under load: what a sample of requests got, beside what the correctness stage says."""

from __future__ import annotations

from typing import Any

from stages.analysis.reading import StudyRecords
from stages.core.records.load import ServedAnswers


def under_load(records: StudyRecords, mode: str) -> dict[str, ServedAnswers]:
    """By arrival rate, where a sample was compared."""
    load = records.load[mode].data
    return {run.rate: run.answers for run in load.runs if run.answers} if load else {}


def wrong_answers(records: StudyRecords, mode: str) -> str:
    """What the sample shows to be wrong, in words, or an empty string."""
    return "; ".join(described(rate, found) for rate, found in under_load(records, mode).items() if found.verdict == "wrong")


def described(rate: str, found: ServedAnswers) -> str:
    """One rate with faults in a sentence."""
    first, text = found.first, f"answers under load at {rate}: {found.num_faults} of {found.num_tokens} tokens are not eager's"
    if first is None:
        return text
    return f"{text}, the first at token {first.token} of request {first.request_id}, {first.given_up} below eager's best logit"


def correctness_section(records: StudyRecords, mode: str) -> dict[str, Any]:
    """`correctness` of a mode in study.json: the record, the samples under load, and the worst verdict of both."""
    record, served = records.correctness[mode].data, under_load(records, mode)
    section: dict[str, Any] = record.model_dump() if record else {"verdict": "not_checked", "checks": []}
    if any(found.verdict == "wrong" for found in served.values()):
        section["verdict"] = "wrong"
    return section | {"under_load": {rate: found.model_dump() for rate, found in served.items()}}
