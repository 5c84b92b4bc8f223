"""What starting costs: the tables of replaced workers and of the middle way."""

from __future__ import annotations

from typing import Any

from stages.core.records.startup import Phases
from stages.views import words
from stages.views.badges import badges
from stages.views.figures.ladder import GROUPS, grouped
from stages.views.tables import first_calls, modes, service, starts
from stages.views.tables.glance import glance

MIDDLE = {
    "supported": True,
    "reason": "",
    "first_served_s": 9.0,
    "switched_s": 80.0,
    "longest_gap_s": 0.25,
    "eager_alone_ms": 11.0,
    "eager_during_ms": 16.5,
    "mode_after_ms": 3.1,
    "num_steps_before": 4200,
    "recompiled": 0,
}


def without_starts(study: dict[str, Any]) -> dict[str, Any]:
    """The study as one that never replaced a worker and never tried the middle way."""
    for mode in study["modes"].values():
        mode.pop("middle_way", None)
        (mode.get("lifetime") or {}).pop("replaced", None)
    return study


def test_every_phase_of_a_start_is_in_one_bar_of_the_ladder(example: dict[str, Any]) -> None:
    assert sorted(key for keys in GROUPS.values() for key in keys) == sorted([*Phases.model_fields, "unaccounted_s"])
    start = example["modes"]["compile"]["startup"]["cold"]
    start["phases"] = dict.fromkeys(Phases.model_fields, 1.0)
    start["unaccounted_s"] = 0.5
    assert sum(grouped(example, "compile", "cold").values()) == len(Phases.model_fields) + 0.5


def test_fleet_cost_stands_by_mode_cache_state_and_interval(example: dict[str, Any]) -> None:
    without_starts(example)["modes"]["compile"]["lifetime"]["replaced"] = {
        "3600": {"cold": {"share_lost": 0.02, "extra_workers": 0.0204}},
        "60": {"cold": {"share_lost": 1.0, "extra_workers": None}},
    }
    table = starts.replaced(example)
    assert list(table.columns) == ["mode, caches", "1 min", "1 h"]
    assert [list(row) for row in table.rows] == [["compile, cold", "100.0 %, never ready", "2.0 %, +0.0204"]]


def test_middle_way_has_its_times_or_its_reason(example: dict[str, Any]) -> None:
    example["modes"]["compile"]["middle_way"] = MIDDLE
    example["modes"]["cudagraph_trees"]["middle_way"] = {"supported": False, "reason": "not measured"}
    table = starts.middle_way(example)
    rows = {row[0]: row for row in table.rows}
    assert rows["compile"][1:5] == ["9.00 s", "80.0 s", "0.250 s", "11.0"]
    assert rows["cudagraph_trees"][-1] == "not measured"


def test_study_without_either_has_no_such_table(example: dict[str, Any]) -> None:
    study = without_starts(example)
    assert not starts.replaced(study).rows
    assert not starts.middle_way(study).rows


def test_first_three_calls_of_a_shape_stand_by_cache_state(example: dict[str, Any]) -> None:
    for mode in example["modes"].values():
        mode["startup"] = {}
    example["modes"]["cudagraph_trees"]["startup"] = {
        "cold": {"calls_s": {"decode/8": [31.0, 0.42, 0.0016]}},
        "warm": {"calls_s": {"decode/8": [2.5, 0.41, 0.0016], "prefill/512": [3.5], "decode/16": [2.0]}},
    }
    table = first_calls.first_calls(example)
    assert list(table.columns) == [
        "mode, shape",
        *(f"{state}: {word}" for state in ("cold", "warm") for word in ("first", "second", "third")),
    ]
    assert [list(row) for row in table.rows] == [
        ["cudagraph_trees, decode 8", "31.0 s", "420 ms", "1.60 ms", "2.50 s", "410 ms", "1.60 ms"],
        ["cudagraph_trees, decode 16", "–", "–", "–", "2.00 s", "–", "–"],
        ["cudagraph_trees, prefill 512", "–", "–", "–", "3.50 s", "–", "–"],
    ]


def test_caches_beside_torchs_are_said_as_each_start_found_them(example: dict[str, Any]) -> None:
    state = {
        "remote_caches": {"fx_graph": False, "autotune": True},
        "pgo_job_id": None,
        "driver_jit_disabled": False,
        "driver_jit_files": 3,
        "driver_jit_bytes": 2048,
        "num_major_faults": 17,
    }
    for mode in example["modes"].values():
        mode["startup"] = {}
    example["modes"]["compile"]["startup"] = {"cold": {"cache_state": state, "pool_s": 1.25}}
    eager = {**state, "remote_caches": {}, "driver_jit_disabled": True}
    example["modes"]["eager"]["startup"] = {"cold": {"cache_state": eager, "pool_s": 0.0}}
    rows = {row[0]: list(row[1:]) for row in first_calls.beside(example).rows}
    assert rows["compile, cold"] == ["autotune", "none", "3 files, 2.00 KiB", "17", "1.25 s"]
    assert rows["eager, cold"] == ["–", "–", "disabled", "17", "0 s"]


def test_completions_by_start_put_the_middle_way_between_cold_and_warm(example: dict[str, Any]) -> None:
    assert not starts.by_start(example).rows
    lifetime = example["modes"]["compile_cuda_graph"]["lifetime"]
    example["choices"]["lifetimes_s"] = [60.0, 600.0]
    lifetime["completions"] = {"2": {"cold": [[0.0, 0.0], [60.0, 24.0], [600.0, 1104.0]], "warm": [[0.0, 0.0], [600.0, 1170.0]]}}
    lifetime["middle_way"] = {"2": [[0.0, 0.0], [60.0, 100.0], [600.0, 1150.0]]}
    table = starts.by_start(example)
    assert list(table.columns) == ["mode, start", "1 min", "10 min"]
    assert [list(row) for row in table.rows] == [
        ["compile_cuda_graph, cold", "24", "1,104"],
        ["compile_cuda_graph, eager while compiling", "100", "1,150"],
        ["compile_cuda_graph, warm", "117", "1,170"],
    ]
    assert "at 2 requests/s" in table.note


def test_cause_of_a_start_that_was_not_as_claimed_stands_beside_it(example: dict[str, Any]) -> None:
    start = example["modes"]["compile"]["startup"]["warm"]
    start |= {"proved": False, "proof": "claims warm, but 3 kernels compiled", "cause": "tuned again"}
    table = service.startup(example)
    rows = {row[0]: row[table.columns.index("cache state proved")] for row in table.rows}
    assert rows["compile, warm"] == "no"
    assert service.unproved(example) == ["compile, warm: claims warm, but 3 kernels compiled; tuned again"]
    assert rows["compile, cold"] == "yes"


def test_mode_whose_path_nobody_looked_at_shows_its_starts_and_nothing_else(example: dict[str, Any]) -> None:
    example["modes"]["compile"] |= {"evidence": None, "load": {}}
    example["verdict"]["rejected"]["compile"] = "not_proven: skipped: capture: no record"
    table = modes.summary(example)
    row = dict(zip(table.columns, next(row for row in table.rows if row[0] == "compile"), strict=True))
    cold, warm = (example["modes"]["compile"]["startup"][cache]["ready_s"] for cache in ("cold", "warm"))
    assert (row["ready cold"], row["ready warm"]) == (words.seconds(cold), words.seconds(warm))
    assert {row[column] for column in table.columns if column.startswith(("sequence", "decode", "goodput"))} == {words.ABSENT}


def test_study_of_starts_alone_shows_each_mode_on_the_first_screen_and_its_badges_lead_to_why(example: dict[str, Any]) -> None:
    for name, mode in example["modes"].items():
        mode |= {"evidence": None, "load": {}, "correctness": None, "lifetime": None}
        example["verdict"]["rejected"][name] = "not_proven: skipped: capture: no record"
    example["verdict"] |= {"choices": {}, "recommended": {}, "spans": {}}
    del example["verdict"]["rejected"]["eager"]
    found = {row[0]: row for row in glance(example).rows}
    started = [name for name, mode in example["modes"].items() if mode["startup"]]
    assert set(found) == {"eager: baseline", *(f"{name}: not ranked" for name in started if name != "eager")}
    assert words.seconds(example["modes"]["compile"]["startup"]["cold"]["ready_s"]) in found["compile: not ranked"]
    assert [badge.section for badge in badges(example)] == ["rejected", "rejected", "machine"]
