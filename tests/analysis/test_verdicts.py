"""Hand-made studies whose right answer is known."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from stages.analysis import answers, parsimony
from stages.analysis.reading import StudyRecords, skipped
from stages.analysis.verdicts import Candidate, choose
from stages.core.records.answer import Answer
from stages.core.records.base import Host
from stages.core.records.load import LoadRecord
from stages.core.records.steps import SequenceRun
from tests.analysis.hand_made import Spec, example_records, plan, records_of, times

FACTORIAL = {"inductor_manual": {"E": "eager", "C": "compile", "R": "cuda_graph", "CR": "compile_cuda_graph"}}


def eager(**changes: object) -> Spec:
    return Spec(
        **(
            {
                "step_us": times(1000, 1100, 4000),
                "cold_s": (5.0, 5.1, 4.9),
                "goodput": {"2": 2.0, "4": 4.0, "8": 3.0},
                "attainment": {"8": 0.4},
            }
            | changes
        )
    )  # type: ignore[arg-type]


def fast(**changes: object) -> Spec:
    base = {
        "step_us": times(200, 220, 800),
        "transform": "inductor",
        "cold_s": (35.0, 35.2, 34.8),
        "goodput": {"2": 2.0, "16": 16.0, "32": 10.0},
        "attainment": {"32": 0.3},
        "tpot_ms": 2.0,
    }
    return Spec(**(base | changes))  # type: ignore[arg-type]


def study(**specs: Spec) -> tuple[StudyRecords, Answer]:
    records = records_of(specs, {"pair": {"E": "eager", "C": "compile"}} if "compile" in specs else {})
    return records, answers.answer(records)


def picks(answer: Answer, rate: str) -> list[str]:
    return [choices[rate].mode for choices in answer.verdict.recommended.values()]


def test_a_faster_mode_wins_at_saturation_once_it_lives_past_its_break_even() -> None:
    _, answer = study(eager=eager(), compile=fast())
    found = answer.modes["compile"].lifetime
    assert found is not None
    assert found.break_even["saturation"]["cold"].lifetime_s == pytest.approx((16 * 35 - 4 * 5) / 12)  # 45 s
    assert picks(answer, "saturation") == ["compile", "compile", "compile"]
    assert answer.verdict.recommended["60"]["saturation"].runner_up == "eager"
    assert picks(answer, "2") == ["eager", "eager", "compile"]
    assert "compile" in answer.verdict.sentence
    assert answer.verdict.configuration.startswith("# how to run compile")


def test_the_sentence_states_the_break_even_of_each_cache_state() -> None:
    quick = fast(goodput={"20": 16.0}, attainment={"20": 0.8}, warm_s=(14.0, 14.0))
    specs = {"eager": eager(goodput={"20": 4.0}, attainment={"20": 0.2}), "compile": quick}
    records = records_of(specs, {}, arrival_rates=[20.0], lifetimes_s=[10.0, 3600.0])
    sentence = answers.answer(records).verdict.sentence
    cold_s, warm_s = (16 * 35 - 4 * 5) / 12, (16 * 14 - 4 * 4) / 12
    expected = f"Run compile at 20 requests/s for workers living longer than {cold_s:.3g} s cold / {warm_s:.3g} s warm; below that eager"
    assert sentence.startswith(expected)


def test_the_fastest_mode_is_rejected_when_its_path_is_refuted() -> None:
    _, answer = study(eager=eager(), compile=fast(verdict="refuted", evidence_reasons=("0 replays in 2,000 steps",)))
    assert answer.verdict.rejected == {"compile": "refuted: 0 replays in 2,000 steps"}
    assert set(picks(answer, "2") + picks(answer, "saturation")) == {"eager"}
    assert answer.modes["compile"].sequence is not None
    assert answer.modes["compile"].sequence.vs_baseline is None
    assert answer.modes["compile"].lifetime is not None
    assert answer.modes["compile"].lifetime.break_even == {}
    assert answer.factorials["pair"].points["decode/1"].compiled_alone is None
    assert any("once this is fixed: refuted" in text for text in answer.verdict.would_flip)


def test_a_mode_that_is_not_proven_is_rejected_too() -> None:
    _, answer = study(eager=eager(), compile=fast(verdict="not_proven"))
    assert answer.verdict.rejected["compile"].startswith("not_proven")


def test_the_fastest_mode_is_rejected_when_its_answers_are_wrong() -> None:
    _, answer = study(eager=eager(), compile=fast(correctness="wrong"))
    assert answer.verdict.rejected["compile"].startswith("wrong: held_output on decode/1 failed (the output of call k changed")
    assert answer.verdict.recommended["3600"]["saturation"].mode == "eager"
    assert answer.factorials["pair"].points["sequence"].missing[0].startswith("C: compile: wrong")


def test_a_mode_that_broke_while_its_answers_were_checked_gets_no_speedup() -> None:
    records, before = study(eager=eager(), compile=fast())
    assert before.modes["compile"].sequence.vs_baseline is not None
    broken = records.correctness["compile"].model_copy(update={"status": "failed", "reason": "ended by SIGSEGV", "data": None})
    answer = answers.answer(replace(records, correctness={**records.correctness, "compile": broken}))
    assert answer.modes["compile"].sequence.vs_baseline is None
    assert answer.factorials["pair"].points["sequence"].missing[0] == "C: compile: failed: correctness: ended by SIGSEGV"
    assert answer.verdict.rejected["compile"] == "failed: correctness: ended by SIGSEGV"
    assert {choice.mode for row in answer.verdict.recommended.values() for choice in row.values()} == {"eager"}


def test_answers_that_were_not_checked_are_no_answers() -> None:
    _, answer = study(eager=eager(), compile=fast(correctness="not_checked"))
    assert answer.verdict.rejected["compile"].startswith("not_checked")


def test_a_mode_that_serves_less_never_breaks_even() -> None:
    slow = fast(goodput={"2": 2.0, "3": 3.0, "3.5": 1.0}, attainment={"3.5": 0.2}, tpot_ms=30.0)
    _, answer = study(eager=eager(), compile=slow)
    found = answer.modes["compile"].lifetime
    assert found is not None
    assert found.break_even["saturation"]["cold"].answer == "never"
    assert found.break_even["2"]["cold"].answer == "never"
    assert answer.verdict.sentence.startswith("Run eager at 2 requests/s: no other mode")


def test_two_equal_modes_are_undecided() -> None:
    _, answer = study(eager=eager(), compile=eager(transform="inductor"))
    assert set(picks(answer, "2")) == {"undecided"}
    choice = answer.verdict.recommended["600"]["2"]
    assert "not told apart" in choice.reason
    assert {choice.runner_up} <= {"eager", "compile"}
    assert answer.verdict.configuration.startswith("# how to run eager")
    assert answer.verdict.shorter == ""


STAYS = "Stay with eager at 2 requests/s, by parsimony: no mode is measurably better for workers that live 1 h from cold caches "


def test_where_nothing_separates_any_mode_the_baseline_stays_by_parsimony() -> None:
    _, answer = study(eager=eager(), compile=eager(transform="inductor"))
    assert answer.verdict.sentence.startswith(STAYS)
    unavailable = fast(status="unavailable", reason="a CPU has no CUDA graphs")
    _, answer = study(eager=eager(), compile=eager(transform="inductor"), cuda_graph=unavailable)
    assert answer.verdict.sentence.startswith(STAYS)


NOT_ALL_KNOWN = {
    "a mode was not measured": {"cuda_graph": fast(status="failed", reason="out of memory")},
    "a path was not proved": {"cuda_graph": fast(verdict="not_proven")},
    "answers were not checked": {"cuda_graph": fast(correctness="not_checked")},
    "steps were not compared": {"dynamo": eager(transform="dynamo")},
    "a mode is faster a step": {"compile": eager(transform="inductor", step_us=times(900, 1000, 3600))},
}


@pytest.mark.parametrize("changes", NOT_ALL_KNOWN.values(), ids=NOT_ALL_KNOWN)
def test_nothing_is_recommended_by_parsimony_where_something_is_missing_or_better(changes: dict[str, Spec]) -> None:
    _, answer = study(**({"eager": eager(), "compile": eager(transform="inductor")} | changes))
    assert set(picks(answer, "2")) == {"undecided"}
    assert answer.verdict.sentence.startswith("Undecided at 2 requests/s")
    assert answer.verdict.configuration == ""


@pytest.mark.parametrize("status", ["unavailable", "failed"])
def test_a_mode_that_did_not_run_is_rejected_with_its_reason(status: str) -> None:
    _, answer = study(eager=eager(), compile=fast(status=status, reason="a CPU has no CUDA graphs"))
    assert answer.verdict.rejected == {"compile": f"{status}: warmup: a CPU has no CUDA graphs"}
    assert answer.factorials["pair"].cell_reasons["C"] == f"compile: {status}: a CPU has no CUDA graphs"
    assert answer.modes["compile"].lifetime is None
    assert answer.verdict.recommended["60"]["2"].reason == "the only mode that may be recommended"


def test_a_baseline_that_failed_leaves_the_other_modes_to_choose_from() -> None:
    _, answer = study(eager=eager(status="failed", reason="out of memory"), compile=fast())
    assert answer.verdict.rejected == {"eager": "failed: warmup: out of memory"}
    assert answer.verdict.recommended["600"]["2"].mode == "compile"
    assert answer.modes["compile"].steady_state["decode/1"].vs_baseline is None


def test_nothing_to_compare_is_said_so() -> None:
    _, answer = study(eager=eager(status="failed", reason="out of memory"))
    assert answer.verdict.recommended == {}
    assert answer.verdict.sentence.startswith("Undecided: no mode, eager included")


def test_a_missing_record_is_skipped_with_a_reason() -> None:
    records = records_of({"eager": eager(), "compile": fast()}, {}, without=("load/compile",))
    answer = answers.answer(records)
    assert answer.verdict.rejected == {"compile": "skipped: load: no record: stage load did not run for compile"}


def test_a_mode_whose_cold_start_was_not_proved_is_not_recommended() -> None:
    _, answer = study(eager=eager(), compile=fast(cold_s=()))
    assert answer.verdict.rejected == {"compile": "not_proven: warmup: no start was proved to be cold"}


def test_no_speedup_is_stated_over_a_baseline_that_is_not_proven() -> None:
    _, answer = study(eager=eager(verdict="not_proven"), compile=fast())
    assert answer.modes["compile"].steady_state["decode/1"].vs_baseline is None
    assert answer.factorials["pair"].points["decode/1"].compiled_alone is None
    assert "eager" not in answer.verdict.rejected


def test_lifetimes_shorter_than_every_start_are_undecided() -> None:
    records = records_of({"eager": eager()}, {}, lifetimes_s=[1.0, 60.0])
    choices = answers.answer(records).verdict.recommended
    assert choices["1"]["2"].mode == "undecided"
    assert "no mode is ready within this lifetime" in choices["1"]["2"].reason
    assert choices["60"]["2"].mode == "eager"


def candidate(mode: str, completions: float, p50: float | None = None, p99: float | None = None, width: float = 0.0) -> Candidate:
    return Candidate(mode, completions, completions - width, completions + width, p50, p99)


OFFERED = {
    "equal": ([candidate("eager", 1000, 10, 30), candidate("compile", 1000, 10, 30)], True),
    "the other is worse": ([candidate("eager", 1000, 10, 30), candidate("compile", 900, 20, 40)], True),
    "the other serves more": ([candidate("eager", 900, 10, 30), candidate("compile", 1000, 10, 30)], False),
    "the other is quicker": ([candidate("eager", 1000, 10, 30), candidate("compile", 1000, 10, 20)], False),
    "one has no TPOT": ([candidate("eager", 1000, 10, 30), candidate("compile", 1000)], False),
    "one may serve more": ([candidate("eager", 1000, 10, 30), candidate("compile", 1000, 10, 30, float("inf"))], False),
    "one was not offered the rate": ([candidate("eager", 1000, 10, 30)], False),
    "none serves": ([candidate("eager", 0, 10, 30), candidate("compile", 0, 10, 30)], False),
}


@pytest.mark.parametrize(("found", "stays"), OFFERED.values(), ids=OFFERED)
def test_the_baseline_stays_only_where_all_is_known_and_nothing_is_better_under_load(found: list[Candidate], stays: bool) -> None:
    records, answer = study(eager=eager(), compile=eager(transform="inductor"))
    assert parsimony.stays(records, answer.modes, {}, found) is stays


def test_equal_completions_rank_by_p99_and_by_p50_where_a_p99_is_absent() -> None:
    found = choose([candidate("a", 1000, 10, 30), candidate("b", 995, 12, 20)])
    assert found is not None
    assert (found.mode, found.runner_up, found.completions) == ("b", "a", 995)
    assert found.reason == "completions within 1 %, p99 TPOT decides: 20 ms against 30 ms of a"
    found = choose([candidate("a", 1000, 10, 30), candidate("b", 995, 12, None)])
    assert found is not None
    assert found.mode == "a"


def test_modes_that_no_rate_saturated_are_not_ranked_by_tpot() -> None:
    unbounded = candidate("b", 300, 1, 1)._replace(high=float("inf"))
    found = choose([candidate("a", 1000, 10, 30), unbounded])
    assert found is not None
    assert found.mode == "undecided"
    assert found.reason == "no rate tried was too much for b: what saturates them is not known"
    alone = choose([candidate("a", 300, 10, 30), unbounded._replace(completions=1000, low=1000)])
    assert alone is not None
    assert (alone.mode, alone.reason) == ("b", "most useful completions")


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)], ids=["as listed", "reversed"])
def test_nothing_served_ranks_no_mode_in_any_order(order: slice) -> None:
    found = choose([candidate("a", 0), candidate("b", 0)._replace(high=5)][order])
    assert found is not None
    assert (found.mode, found.reason.partition(" within")[0]) == ("undecided", "no mode is ready")


def test_completions_are_not_told_apart_when_their_ranges_overlap() -> None:
    assert choose([candidate("a", 1000, 10, 30, 60), candidate("b", 900, 10, 30, 60)]).mode == "undecided"  # type: ignore[union-attr]
    assert choose([candidate("a", 1000, 10, 30, 40), candidate("b", 900, 10, 30, 40)]).mode == "a"  # type: ignore[union-attr]


def test_no_tpot_leaves_equal_modes_undecided_and_no_candidate_leaves_no_choice() -> None:
    found = choose([candidate("a", 1000), candidate("b", 1000)])
    assert found is not None
    assert choose([]) is None


def test_an_unreached_maximum_decides_nothing_at_saturation() -> None:
    bounded = eager(goodput={"2": 2.0, "4": 4.0}, attainment={}, is_lower_bound=True)
    _, answer = study(eager=bounded, compile=fast())
    assert answer.modes["compile"].lifetime is not None
    assert answer.modes["compile"].lifetime.break_even["saturation"]["cold"].answer == "undecided"
    assert any("saturation lies higher" in text for text in answer.verdict.caveats)


def test_factorials_of_different_gpus_are_named_and_so_is_a_study_without_load() -> None:
    records = example_records()
    assert not any("different machines" in text for text in answers.answer(records).verdict.caveats)
    first, *others = records.steady_state
    moved = records.steady_state[first].model_copy(update={"host": Host(hostname="gpu-box", gpu_uuid="GPU-5678")})
    idle = {mode: skipped("load", mode, LoadRecord) for mode in records.modes}
    caveats = answers.answer(replace(records, steady_state={**records.steady_state, first: moved}, load=idle)).verdict.caveats
    (said,) = [text for text in caveats if "different machines" in text]
    assert f"{first} on GPU-5678" in said
    assert f"{', '.join(others)} on GPU-1234" in said
    assert any(text.endswith("nothing ran under load") for text in caveats)
    assert not any("requests/s" in text for text in caveats)


def test_memory_limit_is_said_with_the_sequences_that_it_holds() -> None:
    records = example_records()
    assert not any("device memory" in text for text in answers.answer(records).verdict.caveats)
    limited = replace(records, params=replace(records.params, device_memory_bytes=5_000_000_000))
    (said,) = [text for text in answers.answer(limited).verdict.caveats if "device memory" in text]
    assert said.startswith("tested within 5,000,000,000 bytes of device memory: 2,030 sequences fit with eager, ")
    assert "; 2,026 sequences fit with " in said


def test_length_of_the_runs_uneven_arrivals_and_several_gpus_are_said() -> None:
    records = example_records()
    caveats = answers.answer(records).verdict.caveats
    assert any("served for " in text and " requests), limits" in text for text in caveats)
    assert not any("no steady rate" in text or "GPUs of one kind" in text for text in caveats)
    record = records.load["eager"]
    run = record.data.runs[0]  # type: ignore[union-attr]
    late = [request.model_copy(update={"arrival_s": run.window_s * 0.9}) for request in run.requests]
    ramp = record.data.model_copy(update={"runs": [run.model_copy(update={"requests": late})]})  # type: ignore[union-attr]
    moved = record.model_copy(update={"data": ramp, "host": Host(hostname="gpu-box", gpu_uuid="GPU-5678")})
    caveats = answers.answer(replace(records, load={**records.load, "eager": moved})).verdict.caveats
    assert any(
        text.startswith("arrivals were no steady rate; requests/s in the first and in the last third of their time:") for text in caveats
    )
    (said,) = [text for text in caveats if "GPUs of one kind" in text]
    assert "GPU-5678: load" in said


def test_tokens_are_those_of_the_sampled_steps() -> None:
    """Ten windows of one step: 0 is the prefill, 11 and 22 are decode steps of one sequence, seven are of three."""
    made = plan({1: 20, 3: 75}, {8: 5})
    run = SequenceRun(cell="E", mode="eager", set_index=0, rotation_index=0, sequence_s=1.0, num_steps=10, num_decode_steps=9)
    assert answers._sampled_tokens(made, run) == 1 + 2 * 1 + 7 * 3
    assert answers._sampled_tokens(made, run.model_copy(update={"num_decode_steps": 8})) is None, "another sample than the plan's"


def test_step_times_and_speedups_of_the_example_are_those_it_was_made_from() -> None:
    answer = answers.answer(example_records())
    both = answer.modes["compile_cuda_graph"]
    assert both.steady_state["decode/1"].wall_us.median == pytest.approx(1290, rel=0.02)
    assert both.steady_state["decode/1"].vs_baseline is not None
    assert both.steady_state["decode/1"].vs_baseline.speedup == pytest.approx(13400 / 1290, rel=0.06)
    assert both.sequence is not None
    eager_us, both_us = 100 * 13400 + 100 * 13900 + 20 * 15200, 100 * 1290 + 100 * 1320 + 20 * 5200
    assert both.sequence.sequence_s.value == pytest.approx(both_us / 1e6, rel=0.01)
    assert both.sequence.tokens_per_s == pytest.approx((200 * 4.5 + 20) / both.sequence.sequence_s.value)
    assert answer.factorials["inductor_manual"].points["sequence"].measured_speedup == pytest.approx(eager_us / both_us, rel=0.06)
    assert answer.factorials["inductor_trees"].points["sequence"].total is None
    closed = [point.closure_error_us for point in answer.factorials["inductor_manual"].points.values()]
    assert all(error is not None and math.isclose(error, 0, abs_tol=1e-6) for error in closed)
