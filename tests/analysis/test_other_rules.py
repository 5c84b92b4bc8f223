"""What tighter limits, or counting every completion, would choose, from requests whose times are known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stages.analysis import answers
from stages.analysis.other_rules import judged_by, limits
from stages.analysis.reading import StudyRecords
from stages.core.records.verdict import Choice
from tests.analysis.hand_made import Spec, records_of, times

RATE = {"2": 2.0}


def study(compile_tpot_ms: float = 9.5) -> StudyRecords:
    """Eager is ready at once and 10 ms a token; compile takes 100 s to start and is no faster by what a run can tell."""
    specs = {
        "eager": Spec(times(1000, 1100, 4000), cold_s=(5.0,), warm_s=(5.0,), goodput=RATE, tpot_ms=10.0),
        "compile": Spec(
            times(500, 600, 3000), transform="inductor", cold_s=(100.0,), warm_s=(100.0,), goodput=RATE, tpot_ms=compile_tpot_ms
        ),
    }
    return records_of(specs, {}, arrival_rates=[2.0], lifetimes_s=[60.0, 600.0, 3600.0])


def flips(records: StudyRecords) -> list[str]:
    return [line for line in answers.answer(records).verdict.would_flip if " limit of " in line]


def test_the_widest_tighter_limit_that_names_another_mode_is_told_with_its_lifetimes() -> None:
    records = study(compile_tpot_ms=2.0)
    before = answers.answer(records).verdict.recommended
    assert [before[lifetime]["2"].mode for lifetime in ("60", "600")] == ["eager", "eager"]
    found = flips(records)
    assert found[0] == "a TPOT limit of 10 ms instead of 50 ms at 2 requests/s: compile instead of eager for 10 min, 1 h"
    assert not any(" TPOT limit of 5 ms" in line for line in found)


def test_a_limit_that_no_mode_meets_is_no_flip() -> None:
    assert flips(study(compile_tpot_ms=10.0)) == []


def test_choice_that_rests_on_the_search_is_no_flip_of_a_limit() -> None:
    """The search knows of the study's own limits only: judged by the runs alone another mode may be named without any tighter limit."""
    records = study()
    named = {
        mode: {"60": {"2": Choice(mode=mode, runner_up=None, completions=1.0, runner_up_completions=None, reason="")}}
        for mode in ("eager", "compile")
    }
    assert limits(records, named["compile"], lambda _: named["eager"]) == []

    def tight(judged: StudyRecords) -> dict[str, dict[str, Choice]]:
        return named["eager" if judged.load["eager"].data.slo["tpot_ms"] < 50 else "compile"]  # type: ignore[union-attr]

    assert limits(records, named["compile"], tight)[0].startswith(
        "a TPOT limit of 25 ms instead of 50 ms at 2 requests/s: eager instead of"
    )


def test_goodput_and_attainment_are_counted_again_from_the_requests() -> None:
    records = study()
    run = records.load["eager"].data.runs[0]  # type: ignore[union-attr]
    times_ms = sorted(request.tpot_ms or 0.0 for request in run.requests)
    middle_ms = times_ms[len(times_ms) // 2 - 1]
    data = judged_by(records, "tpot_ms", middle_ms).load["eager"].data
    assert data is not None
    assert data.slo == {"ttft_ms": 1000.0, "tpot_ms": middle_ms}
    assert data.runs[0].slo_attainment == pytest.approx(0.5, abs=0.01)
    assert data.runs[0].request_goodput == pytest.approx(0.5 * run.num_sent / run.window_s, rel=0.02)
    assert (data.max_goodput, data.max_goodput_is_lower_bound) == (None, False)
    assert records.load["eager"].data.slo["tpot_ms"] == 50.0  # type: ignore[union-attr]


def test_what_has_the_most_completions_is_told_where_the_lower_tpot_decided() -> None:
    records = study(compile_tpot_ms=2.0)
    longest = answers.answer(replace(records, params=replace(records.params, lifetimes_s=[60.0, 86400.0])))
    assert longest.verdict.recommended["86400"]["2"].mode == "compile"
    said = "counting every completion, none given up for a lower TPOT, at 2 requests/s: eager instead of compile for 1 d"
    assert said in longest.verdict.would_flip
    assert not any(line.startswith("counting") for line in answers.answer(records).verdict.would_flip)


def test_a_limit_whose_run_was_late_itself_says_so() -> None:
    records = study(compile_tpot_ms=2.0)
    record = records.load["compile"]
    assert record.data is not None
    late = record.data.model_copy(update={"runs": [record.data.runs[0].model_copy(update={"lateness_share": 0.047})]})
    found = flips(replace(records, load={**records.load, "compile": record.model_copy(update={"data": late})}))
    assert found
    assert all(line.endswith(" (one run each; arrivals were noticed late in that of compile)") for line in found)
