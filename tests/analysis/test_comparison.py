"""Two studies of the same work: each judgement against a change made by hand."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from stages.analysis.comparison import compare, environment_changes, new_fallbacks, wins
from stages.analysis.comparison_rules import judged_ratio
from stages.core.errors import UserError
from tests.tracking.study_folder import example

Study = dict[str, Any]


def judgements(before: Study, after: Study, judgement: str) -> list[tuple[str, str]]:
    return [(row.mode, row.subject) for row in compare(before, after) if row.judgement == judgement]


def pair() -> tuple[Study, Study]:
    before = example(("eager", "compile"))
    return before, copy.deepcopy(before)


def scale_start(study: Study, cache: str, factor: float) -> None:
    """Every start of `compile` from one cache state takes longer."""
    start = study["modes"]["compile"]["startup"][cache]
    start |= {key: start[key] * factor for key in ("ready_s", "low_s", "high_s")}


def test_study_against_itself_is_nowhere_worse_or_better() -> None:
    before, after = pair()
    assert not judgements(before, after, "worse")
    assert not judgements(before, after, "better")


def test_evidence_that_is_no_longer_confirmed_comes_first() -> None:
    before, after = pair()
    after["modes"]["compile"]["evidence"]["verdict"] = "refuted"
    scale_start(after, "cold", 2)
    rows = compare(before, after)
    worse = [(row.section, row.subject) for row in rows if row.judgement == "worse"]
    assert worse == [("paths", "claim"), ("startup", "ready from cold (s)")]
    assert not [row for row in rows if row.mode == "compile" and row.subject.startswith("speed-up")]


def fall_back(study: Study, count: int) -> None:
    """Let some steps of `compile` run uncompiled."""
    mode = study["modes"]["compile"]
    claimed = "compiled"
    mode["evidence"]["path_counts"] = {claimed: mode["evidence"]["num_steps"] - count, "eager": count}
    mode["coverage"]["strip"]["runs"] = [["eager", "decode", 8, count], [claimed, "decode", 8, 5]]


def test_new_fallback_is_the_top_line_and_says_where() -> None:
    before, after = pair()
    fall_back(before, 0)
    fall_back(after, 20)
    row = compare(before, after)[0]
    assert (row.section, row.subject, row.judgement, row.why) == (
        "fallbacks",
        "share of steps eager, not compiled",
        "worse",
        "20 at decode/8",
    )
    (line,) = new_fallbacks(compare(before, after))
    assert line.startswith("compile: share of steps eager, not compiled: 0 -> ")
    assert not new_fallbacks(compare(after, before))
    assert any("share of steps eager" in line for line in wins(compare(after, before)))


def test_new_fallback_is_found_though_every_average_is_better() -> None:
    before, after = pair()
    fall_back(before, 0)
    fall_back(after, 1)
    scale_start(after, "cold", 1 / 3)
    assert new_fallbacks(compare(before, after))


def test_fallbacks_that_stay_the_same_are_not_new() -> None:
    before, after = pair()
    fall_back(before, 20)
    fall_back(after, 20)
    assert not new_fallbacks(compare(before, after))


@pytest.mark.parametrize("status", ["failed", "unavailable", "skipped"])
def test_mode_that_no_longer_runs_fell_back_as_a_whole(status: str) -> None:
    before, after = pair()
    after["modes"]["compile"] |= {"status": status, "reason": "it broke"}
    assert new_fallbacks(compare(before, after)) == [f"compile: status: ok -> {status} (it broke)"]


def test_support_that_a_release_loses_is_worse() -> None:
    before, after = pair()
    before["environment"]["support"] = {"graph_partition": {"supported": True, "why": ""}}
    after["environment"]["support"] = {"graph_partition": {"supported": False, "why": ""}, "new": {"supported": True, "why": ""}}
    assert judgements(before, after, "worse") == [("", "graph_partition")]
    assert ("", "new") in judgements(before, after, "undecided")


def startup(study: Study, **changes: Any) -> None:
    study["modes"]["compile"]["startup"]["warm"] |= changes


def test_phase_that_moved_is_judged_and_a_small_one_is_not() -> None:
    before, after = pair()
    startup(before, ready_s=20.0, phases={"inductor_s": 10.0, "dynamo_s": 5.0, "load_s": 0.1})
    startup(after, ready_s=26.0, phases={"inductor_s": 15.0, "dynamo_s": 5.4, "load_s": 0.9})
    rows = {row.subject: row.judgement for row in compare(before, after) if row.mode == "compile" and "from warm" in row.subject}
    assert rows["inductor from warm (s)"] == "worse"
    assert rows["dynamo from warm (s)"] == "same"
    assert "load from warm (s)" not in rows
    startup(after, ready_s=20.0)
    (alone,) = [row for row in compare(before, after) if (row.mode, row.subject) == ("compile", "inductor from warm (s)")]
    assert (alone.judgement, alone.why) == ("undecided", "moved alone: ready is same")


def test_phase_of_repeated_starts_is_judged_on_their_shorter_distance() -> None:
    studies = pair()
    for study, ready_s in zip(studies, (10.0, 12.0), strict=True):
        startup(study, ready_s=ready_s, low_s=ready_s - 0.1, high_s=ready_s + 0.1, n=3)
        study["modes"]["compile"]["startup"]["warm"]["phases"]["inductor_s"] = ready_s / 2
    (row,) = [row for row in compare(*studies) if (row.mode, row.subject) == ("compile", "inductor from warm (s)")]
    assert (row.judgement, row.why) == ("worse", "")


@pytest.mark.parametrize(
    ("num_starts", "ranges", "expected"),
    [(3, ((9, 11), (11.5, 12.5)), "worse"), (3, ((9, 12), (11.5, 12.5)), "undecided"), (1, ((10, 10), (12, 12)), "undecided")],
)
def test_three_starts_on_each_side_decide_on_shorter_distances_if_their_ranges_are_apart(
    num_starts: int, ranges: tuple[tuple[float, float], tuple[float, float]], expected: str
) -> None:
    studies = pair()
    for study, ready_s, (low, high) in zip(studies, (10.0, 12.0), ranges, strict=True):
        startup(study, ready_s=ready_s, low_s=low, high_s=high, n=num_starts)
    rows = {row.subject: row.judgement for row in compare(*studies)}
    assert rows["ready from warm (s)"] == expected


def test_warm_start_that_compiles_now_is_worse() -> None:
    before, after = pair()
    startup(before, proved=True, cache_use={"fx_graph_misses": 0})
    startup(after, proved=False, verdict="refuted", cache_use={"fx_graph_misses": 3})
    found = [row for row in judgements(before, after, "worse") if "warm" in row[1]]
    assert found == [("compile", "warm start"), ("compile", "fx_graph_misses, warm")]


def test_load_is_compared_at_equal_limits_only() -> None:
    before, after = pair()
    assert any(row.section == "load" for row in compare(before, after))
    after["modes"]["compile"]["load"]["slo"] = {"ttft_ms": 1.0, "tpot_ms": 1.0}
    assert not [row for row in compare(before, after) if row.section == "load" and row.mode == "compile"]


def test_attention_backends_must_be_equal_and_kernel_names_need_not() -> None:
    before, after = pair()
    before["model"]["attention_kernels"] = ["pytorch_flash::flash_fwd_kernel<1>"]
    after["model"]["attention_kernels"] = ["pytorch_flash::flash_fwd_kernel<2>"]
    assert "attention_kernels" in environment_changes(before, after)
    compare(before, after)
    after["model"]["attention_kernels"] = ["cudnn_generated_sdpa"]
    with pytest.raises(UserError, match="attention kernel: must be the same in both studies"):
        compare(before, after)


def test_studies_without_a_mode_in_common_are_refused() -> None:
    before, after = pair()
    after["modes"] = {"other": after["modes"]["compile"]}
    with pytest.raises(UserError, match="modes: must have one in common"):
        compare(before, after)


@pytest.mark.parametrize("absent", ["model", "trace", "environment", "choices"])
def test_study_with_parts_missing_is_compared_or_refused_and_never_breaks(absent: str) -> None:
    before, after = pair()
    del before[absent], after[absent]
    assert compare(before, after)
    after["modes"]["compile"] = {"status": "ok"}
    assert compare(before, after)
    assert compare(after, before)


def test_wrong_answers_are_worse() -> None:
    before, after = pair()
    after["modes"]["compile"]["correctness"]["verdict"] = "wrong"
    assert ("compile", "answers") in judgements(before, after, "worse")


def test_mode_that_fails_now_is_worse_and_its_numbers_are_not_compared() -> None:
    before, after = pair()
    after["modes"]["compile"]["status"] = "failed"
    assert [row.subject for row in compare(before, after) if row.mode == "compile"] == ["status"]
    assert judgements(before, after, "worse") == [("compile", "status")]


def test_mode_that_is_gone_is_said_so() -> None:
    before, after = pair()
    del after["modes"]["compile"]
    assert judgements(before, after, "undecided") == [("compile", "status"), *judgements(example(("eager",)), after, "undecided")]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"value": 2.0, "low": 1.9, "high": 2.1}, {"value": 3.0, "low": 2.9, "high": 3.1}, "better"),
        ({"value": 3.0, "low": 2.9, "high": 3.1}, {"value": 2.0, "low": 1.9, "high": 2.1}, "worse"),
        ({"value": 2.0, "low": 1.9, "high": 2.1}, {"value": 2.1, "low": 2.0, "high": 2.2}, "undecided"),
        ({"value": 2.0, "low": 1.999, "high": 2.001}, {"value": 2.002, "low": 2.001, "high": 2.003}, "same"),
        ({"value": 2.0, "low": None, "high": None}, {"value": 2.08, "low": None, "high": None}, "undecided"),
        (2.0, 2.2, "better"),
        (2.0, 1.8, "worse"),
        (2.0, 2.0, "same"),
    ],
)
def test_speedup_ratio_is_judged_by_intervals_else_by_distance(before: Any, after: Any, expected: str) -> None:
    assert judged_ratio(before, after, 0.05, higher_is_better=True) == expected
    opposite = {"better": "worse", "worse": "better"}.get(expected, expected)
    assert judged_ratio(before, after, 0.05, higher_is_better=False) == opposite


@pytest.mark.parametrize(
    ("section", "key", "value"), [("model", "name", "other"), ("model", "precision", "fp32"), ("trace", "name", "other")]
)
def test_studies_of_different_work_are_refused(section: str, key: str, value: str) -> None:
    before, after = pair()
    after[section][key] = value
    with pytest.raises(UserError, match="must be the same in both studies"):
        compare(before, after)


def test_another_release_is_no_obstacle_and_is_listed() -> None:
    before, after = pair()
    after["environment"]["torch"] = "9.9"
    assert environment_changes(before, after) == {"torch": (before["environment"]["torch"], "9.9")}
    assert not judgements(before, after, "worse")


def single(study: Study) -> Study:
    """No intervals and one start each, as `quick` gives them."""
    for mode in study["modes"].values():
        for start in mode["startup"].values():
            start |= {"n": 1}
        for point in [
            *mode["steady_state"]["decode"].values(),
            *mode["steady_state"]["prefill"].values(),
            mode["steady_state"]["sequence"],
        ]:
            point["vs_baseline"] = (point.get("vs_baseline") or {}) | {"low": None, "high": None} if point.get("vs_baseline") else None
    return study


def scale_decode(mode: dict[str, Any], factor: float) -> None:
    for times in mode["steady_state"]["decode"].values():
        times["wall_us"]["median"] *= factor


def test_single_values_are_judged_beyond_what_the_machine_moved() -> None:
    """One process cannot tell a slower release from a slower machine."""
    before, after = (single(study) for study in pair())
    scale_decode(after["modes"]["compile"], 1.4)
    assert [row for row in judgements(before, after, "worse") if row[1].startswith("time, decode")]
    scale_decode(after["modes"]["eager"], 1.5)
    assert not [row for row in judgements(before, after, "worse") if row[1].startswith("time, decode")]
    noted = [row for row in compare(before, after) if row.subject.startswith("time, decode") and row.mode == "compile"]
    assert all(row.why == "single values: judged beyond 50 %, what the machine moved" for row in noted)


def test_start_is_judged_beyond_what_the_baselines_start_moved() -> None:
    before, after = (single(study) for study in pair())
    scale_start(after, "cold", 1.8)
    assert ("compile", "ready from cold (s)") in judgements(before, after, "worse")
    after["modes"]["eager"]["startup"]["cold"]["ready_s"] *= 2
    assert ("compile", "ready from cold (s)") not in judgements(before, after, "worse")


def test_single_speedup_is_judged_beyond_the_worst_pair_of_twins() -> None:
    before, after = (single(study) for study in pair())
    for study in (before, after):
        pair_off_by(study, 0.99)
    after["modes"]["compile"]["steady_state"]["sequence"]["vs_baseline"]["speedup"] *= 0.9
    assert ("compile", "speed-up, sequence") in judgements(before, after, "worse")
    pair_off_by(after, 1.3)
    assert ("compile", "speed-up, sequence") not in judgements(before, after, "worse")


def pair_off_by(study: Study, ratio: float) -> None:
    """One A/A pair, as the study's own attribution holds it."""
    factorial = study["attribution"]["inductor_manual"]
    study["attribution"] = {"inductor_manual": factorial}
    (one, *_) = factorial["twins"]["pairs"]
    factorial["twins"] |= {"of": 1, "pairs": [one | {"ratio": ratio}]}


def test_machine_is_not_named_where_intervals_on_both_sides_decided() -> None:
    before, after = pair()
    scale_decode(after["modes"]["eager"], 1.5)
    scale_decode(after["modes"]["compile"], 1.5)
    for size in after["modes"]["compile"]["steady_state"]["sequence"]["sequence_s"].keys() & {"value", "low", "high"}:
        after["modes"]["compile"]["steady_state"]["sequence"]["sequence_s"][size] *= 1.2
    rows = {row.subject: row for row in compare(before, after) if row.mode == "compile"}
    assert rows["time, decode/8 (us, median)"].why == "single values: judged beyond 50 %, what the machine moved"
    assert (rows["time, sequence (s)"].judgement, rows["time, sequence (s)"].why) == ("worse", "")


@pytest.mark.parametrize(
    ("sets", "judgement", "why"),
    [
        ([[100.0, 101.0, 102.0], [139.0, 141.0, 143.0]], "worse", ""),
        ([[100.0, 150.0, 90.0], [140.0, 210.0, 100.0]], "undecided", "over sets of processes B is 0.60 to 2.78 of A"),
        ([[100.0], [140.0]], "worse", ""),  # no interval, no veto
    ],
)
def test_step_time_that_moved_far_is_undecided_where_the_sets_tell_no_change(sets: list[list[float]], judgement: str, why: str) -> None:
    before, after = (single(study) for study in pair())
    scale_decode(after["modes"]["compile"], 1.4)
    for study, means in zip((before, after), sets, strict=True):
        study["attribution"]["inductor_manual"]["8"]["set_us"] = {"C": means}
        study["modes"]["compile"]["steady_state"]["decode"]["8"]["factorial"] = "inductor_manual"
    rows = {row.subject: row for row in compare(before, after) if row.mode == "compile"}
    row = rows["time, decode/8 (us, median)"]
    assert (row.judgement, row.why) == (judgement, why)


def load_rows(before: Study, after: Study) -> dict[str, tuple[str, str, str]]:
    """Judgement and both values of what `compile` serves."""
    rows = [row for row in compare(before, after) if (row.section, row.mode) == ("load", "compile")]
    return {row.subject: (row.judgement, row.before, row.after) for row in rows if "goodput" in row.subject}


@pytest.mark.parametrize("nothing", [None, 0.0])
def test_load_that_collapses_is_worse_and_one_that_comes_back_is_better(nothing: float | None) -> None:
    before, after = pair()
    load = after["modes"]["compile"]["load"]
    load |= {"max_goodput": nothing, "8": load["8"] | {"request_goodput": 0.0, "slo_attainment": 0.0}}
    shown = "none" if nothing is None else "0"
    found = load_rows(before, after)
    assert found["max goodput (1/s)"] == ("worse", "8", shown)
    assert found["goodput at 8 (1/s)"] == ("worse", "8", "0")
    assert found["goodput at 2 (1/s)"] == ("same", "2", "2")
    found = load_rows(after, before)
    assert found["max goodput (1/s)"] == ("better", shown, "8")
    assert found["goodput at 8 (1/s)"] == ("better", "0", "8")


def test_maximum_that_was_not_looked_for_where_the_other_study_met_it_is_no_collapse() -> None:
    before, after = pair()
    load = after["modes"]["compile"]["load"]
    after["modes"]["compile"]["load"] = {key: load[key] for key in ("slo", "search", "12")} | {"max_goodput": None}
    assert load_rows(before, after).keys() == {"goodput at 12 (1/s)"}
    probe = {"arrival_rate_per_s": 1.0, "seed": 1, "request_goodput": 0.2, "slo_attainment": 0.2, "met": False}
    after["modes"]["compile"]["load"]["search"] = [probe]
    assert load_rows(before, after)["max goodput (1/s)"] == ("worse", "8", "none")


def test_maximum_that_neither_study_has_is_no_row() -> None:
    before, after = pair()
    for study in (before, after):
        study["modes"]["compile"]["load"]["max_goodput"] = None
    assert "max goodput (1/s)" not in load_rows(before, after)
    del after["modes"]["compile"]["load"]["max_goodput"]
    before["modes"]["compile"]["load"]["max_goodput"] = 8.0
    assert "max goodput (1/s)" not in load_rows(before, after)
