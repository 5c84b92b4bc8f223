"""A mode whose sample under load is wrong gets no gain and no recommendation, and study.json says why."""

from __future__ import annotations

from dataclasses import replace

from stages.analysis import answers
from stages.analysis.eligibility import objection, rejection
from stages.analysis.reading import StudyRecords
from stages.analysis.study import study_document
from stages.core.records.load import Difference, LoadRecord, ServedAnswers
from stages.views.tables import served
from tests.analysis.hand_made import example_records

MODE = "compile_cuda_graph"
FAULT = Difference(request_id=7, token=3, margin=0.5, given_up=2.5, noise=0.01, is_fault=True)
TIE = Difference(request_id=2, token=9, margin=0.001, given_up=0.001, noise=0.01, is_fault=False)


def records_with(found: ServedAnswers) -> StudyRecords:
    records = example_records()
    record = records.load[MODE]
    assert record.data
    runs = [run.model_copy(update={"answers": found if index == 0 else None}) for index, run in enumerate(record.data.runs)]
    changed: LoadRecord = record.model_copy(update={"data": record.data.model_copy(update={"runs": runs})})
    return replace(records, load={**records.load, MODE: changed})


def test_fault_under_load_is_wrong_everywhere() -> None:
    records = records_with(ServedAnswers(verdict="wrong", num_requests=6, num_tokens=90, num_ties=1, num_faults=2, first=FAULT))
    reason = objection(records, MODE)
    assert reason.startswith("wrong: answers under load at ")
    assert "2 of 90 tokens are not eager's, the first at token 3 of request 7, 2.5 below eager's best logit" in reason
    assert rejection(records, MODE) == reason
    assert all(choice.mode != MODE for row in answers.answer(records).verdict.recommended.values() for choice in row.values())
    study = study_document(records, answers.answer(records))
    assert study["modes"][MODE]["correctness"]["verdict"] == "wrong"
    (row,) = served.answers(study).rows
    assert row[1:6] == ["wrong", "6", "90", "1", "2"]
    assert row[-1].startswith("fault at token 3 of request 7: 2.50 below eager's best logit")


def test_ties_under_load_cost_nothing() -> None:
    found = ServedAnswers(verdict="correct", num_requests=6, num_tokens=90, num_ties=3, num_faults=0, first=TIE)
    records = records_with(found)
    assert objection(records, MODE) == objection(example_records(), MODE) == ""
    study = study_document(records, answers.answer(records))
    assert study["modes"][MODE]["correctness"]["verdict"] == "correct"
    assert list(study["modes"][MODE]["correctness"]["under_load"].values()) == [found.model_dump()]
    (row,) = served.answers(study).rows
    assert row[-1].startswith("tie at token 9")


def test_study_without_samples_has_no_table() -> None:
    records = example_records()
    study = study_document(records, answers.answer(records))
    assert study["modes"][MODE]["correctness"]["under_load"] == {}
    assert list(served.answers(study).rows) == []
