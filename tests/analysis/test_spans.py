"""The choice along a worker's life, and the factorial that a speed-up is taken from."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest

from stages.analysis import answers, speedups, verdicts
from stages.analysis.candidates import Candidate
from stages.analysis.spans import shorter, spans
from stages.analysis.wording import Table, below
from stages.core.records.verdict import Choice, Span
from tests.analysis.hand_made import Spec, example_records, records_of, times

PAIR = {"E": "eager", "C": "compile"}
BOTH = {"E": "eager", "C": "compile", "CR": "compile_cuda_graph"}


def steps(*changes: tuple[float, str]) -> list[tuple[str, float]]:
    """Spans found where the choice changes at these lifetimes in s."""

    def pick(lifetime_s: float) -> str:
        return [mode for from_s, mode in changes if lifetime_s >= from_s][-1]

    return [(span.mode, pytest.approx(span.from_s, rel=1e-3)) for span in spans(pick, [60.0, 86400.0])]


def test_every_change_is_found_to_a_thousandth_of_the_lifetime() -> None:
    assert steps((0, ""), (7.5, "a"), (300, "undecided"), (4886, "b")) == [("a", 7.5), ("undecided", 300), ("b", 4886)]


def test_what_holds_for_a_sliver_is_left_out_and_its_neighbours_are_one() -> None:
    assert steps((0, "a"), (200.0, "undecided"), (200.5, "a"), (3000, "b")) == [("a", 0), ("b", 3000)]
    assert steps((0, "a"), (8344, "between"), (9060, "b")) == [("a", 0), ("b", 9060)]


def test_a_sliver_that_holds_at_a_lifetime_asked_for_is_told() -> None:
    assert steps((0, "a"), (59, "between"), (61, "b")) == [("a", 0), ("between", 59), ("b", 61)]


def test_one_choice_at_every_lifetime_is_one_span() -> None:
    assert steps((0, "a")) == [("a", 0)]


def test_a_mode_that_serves_nothing_ties_with_none() -> None:
    late = Candidate("late", 0, 0, 0, 1, 1)
    assert verdicts.choose([Candidate("ready", 5, 0, 10, 10, 10), late]).mode == "ready"  # type: ignore[union-attr]


def test_the_mode_of_shorter_lives_is_the_last_decided_one_below() -> None:
    table: Table = {"60": {"2": Choice(mode="x", runner_up="r", completions=1, runner_up_completions=1, reason="")}}
    along = [Span(mode=mode, from_s=at) for mode, at in (("z", 1), ("y", 2), ("undecided", 3), ("x", 4))]
    assert shorter({"2": {"cold": along}}, table, "x") == "y"
    assert shorter({"2": {"cold": along[3:]}}, table, "x") == ""
    assert shorter({}, {}, "x") == ""


def test_the_sentence_names_the_mode_of_shorter_lives_and_not_the_runner_up() -> None:
    verdict = answers.answer(example_records()).verdict
    said = "Run compile_cuda_graph at 2 requests/s for workers living longer than 70.1 min cold / 15.1 min warm; below that cuda_graph"
    assert verdict.sentence.startswith(said)
    assert verdict.shorter == "cuda_graph"
    assert verdict.configurations["cuda_graph"].startswith("# how to run cuda_graph")


def test_the_recommended_mode_is_compared_with_that_of_shorter_lives_from_turns_that_hold_both() -> None:
    records = example_records()
    found = speedups.over(records, "compile_cuda_graph", "cuda_graph")
    assert found is not None
    rotations = records.steady_state[found.factorial].data
    assert rotations is not None
    passes = {mode: [one.sequence_s for one in rotations.sequences if one.mode == mode] for mode in ("cuda_graph", "compile_cuda_graph")}
    assert found.speedup == pytest.approx(fmean(passes["cuda_graph"]) / fmean(passes["compile_cuda_graph"]), rel=0.02)
    said = [line for line in answers.answer(records).verdict.reasons if " times as fast as cuda_graph (" in line]
    assert said == [f"and {found.speedup:.2f} [{found.low:.2f}, {found.high:.2f}] times as fast as cuda_graph (faster, {found.factorial})"]
    assert speedups.over(records, "compile_cuda_graph", "compile_cuda_graph") is None
    assert speedups.over(records, "compile_cuda_graph", "no_such_mode") is None


def test_a_lifetime_before_the_only_mode_is_ready_is_not_among_those_it_is_recommended_for() -> None:
    served = {"20": 20.0}
    only = Spec(times(500, 600, 3000), transform="inductor", cold_s=(101.0,), warm_s=(20.1,), goodput=served, tpot_ms=4.0)
    records = records_of({"eager": Spec(times(1000, 1100, 4000), status="failed"), "compile": only}, {}, arrival_rates=[20.0])
    assert min(records.params.lifetimes_s) < 101
    sentence = answers.answer(records).verdict.sentence
    assert sentence.startswith(
        "Run compile at 20 requests/s for workers living longer than 101 s cold, any lifetime warm; below that no mode"
    )


def test_what_stays_undecided_between_two_modes_is_said_with_its_ends() -> None:
    served = {"20": 20.0}
    specs = {
        "eager": Spec(times(1000, 1100, 4000), cold_s=(2.0,), goodput=served, tpot_ms=10.0),
        "dynamo": Spec(times(1000, 1100, 4000), transform="dynamo", cold_s=(5.0,), goodput=served, tpot_ms=10.0),
        "compile": Spec(times(500, 600, 3000), transform="inductor", cold_s=(50.0,), warm_s=(9.0,), goodput=served, tpot_ms=4.0),
    }
    records = records_of(specs, {}, arrival_rates=[20.0], lifetimes_s=[60.0, 86400.0])
    eager_until_s, compile_from_s = (5 - 0.99 * 2) / 0.01, (50 - 0.99 * 2) / 0.01  # from there within 1 %
    lived = f"longer than {compile_from_s / 60:.3g} min cold / {(9 - 0.99 * 4) / 0.01 / 60:.3g} min warm"
    said = f"Run compile at 20 requests/s for workers living {lived}; eager below {eager_until_s / 60:.3g} min cold; undecided between."
    assert answers.answer(records).verdict.sentence == said


def two_factorials(second_us: float) -> tuple[dict[str, Spec], dict[str, dict[str, str]]]:
    specs = {
        "eager": Spec(times(1000, 1100, 4000), cold_s=(5.0,), goodput={"2": 2.0}, tpot_ms=10.0),
        "compile": Spec(times(second_us, second_us, 3000), transform="inductor", goodput={"2": 2.0}, tpot_ms=5.0),
        "compile_cuda_graph": Spec(times(200, 220, 800), transform="inductor", replay="manual", goodput={"2": 2.0}, tpot_ms=2.0),
    }
    return specs, {"pair": PAIR, "both": BOTH}


def test_a_speed_up_comes_from_the_factorial_that_holds_the_recommended_mode() -> None:
    answer = answers.answer(records_of(*two_factorials(500), arrival_rates=[2.0], lifetimes_s=[3600.0]))
    assert answer.verdict.recommended["3600"]["2"].mode == "compile_cuda_graph"
    for mode in ("compile", "compile_cuda_graph"):
        sequence = answer.modes[mode].sequence
        assert sequence is not None
        assert sequence.vs_baseline is not None
        assert sequence.vs_baseline.factorial == "both"


def test_without_a_recommended_mode_the_factorial_declared_first_is_used() -> None:
    records = records_of(*two_factorials(500), arrival_rates=[2.0], lifetimes_s=[3600.0])
    assert list(speedups.used_factorials(records, "undecided").steady_state) == ["pair", "both"]
    assert list(speedups.used_factorials(records, "compile_cuda_graph").steady_state) == ["both", "pair"]


def test_two_factorials_that_agree_and_two_that_do_not() -> None:
    records = records_of(*two_factorials(500), arrival_rates=[2.0], lifetimes_s=[3600.0])
    found = speedups.repeats(records, "compile")["sequence"]
    assert [one.factorial for one in found.speedups] == ["pair", "both"]
    assert found.agree
    slower = records_of(*two_factorials(800), arrival_rates=[2.0], lifetimes_s=[3600.0]).steady_state["both"]
    apart = replace(records, steady_state={**records.steady_state, "both": slower})
    assert not speedups.repeats(apart, "compile")["sequence"].agree
    assert speedups.repeats(apart, "compile_cuda_graph") == {}


def test_every_lifetime_of_the_sentence_says_from_which_caches() -> None:
    def along(*changes: tuple[str, float]) -> list[Span]:
        return [Span(mode=mode, from_s=at) for mode, at in changes]

    cold = along(("a", 3.0), ("undecided", 200.0), ("b", 400.0), ("c", 4000.0))
    warm = along(("a", 2.0), ("undecided", 100.0), ("b", 300.0), ("c", 500.0))
    assert below({"cold": cold, "warm": warm}) == "; below that b, a below 3.33 min cold / 100 s warm"
    assert below({"cold": cold, "warm": warm[1:]}) == "; below that b, a below 3.33 min cold"
    assert below({"cold": cold[:2]}) == "; a below 3.33 min cold"
