"""What the first screen says of gains, and what a page says instead of a table that has nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stages.views.configurations import configurations
from stages.views.figures.lifetime import lifetime
from stages.views.headline import why
from stages.views.roles import factorials, roles
from stages.views.switching import switch
from stages.views.tables.glance import glance
from stages.views.tables.several import repeats
from stages.views.tables.steps import floors, no_floor


def test_savings_carry_their_interval(example: dict[str, Any]) -> None:
    total = example["attribution"]["inductor_manual"]["1"]["total"]
    total |= {"value": 2500.0, "low": 2000.0, "high": 3000.0}
    assert "save 2.50 ms [2.00, 3.00] of that step (decode batch 1, inductor_manual)" in why(example)


def test_without_replay_what_compiling_saves_is_said(cpu_study: dict[str, Any]) -> None:
    for answer in cpu_study["attribution"].values():
        answer["1"] |= {"total": None, "compiled_alone": {"value": 400.0, "low": None, "high": None}}
    assert "Compiling saves 0.400 ms of that step (decode batch 1, inductor_manual)." in why(cpu_study)


def test_study_without_any_floor_says_why_once(example: dict[str, Any]) -> None:
    assert floors(example).rows
    assert no_floor(example) == []
    for mode in example["modes"].values():
        mode["floor"] = {"1": {"floor_us": None, "ratio": None, "reason": "not applicable: no bandwidth was measured"}}
    assert floors(example).rows == []
    assert no_floor(example) == ["floor of a step: not applicable: no bandwidth was measured"]


ROLES = {"compile_cuda_graph": "longer lives", "cuda_graph": "shorter lives", "dynamo": "runner-up", "eager": "baseline"}


def with_runner_up(study: dict[str, Any], name: str) -> dict[str, Any]:
    study["verdict"]["choices"]["86400"]["2"]["runner_up"] = name
    return study


def test_the_mode_of_shorter_lives_has_its_own_line_and_numbers_beside_the_runner_up(example: dict[str, Any]) -> None:
    assert roles(with_runner_up(example, "dynamo")) == ROLES
    drawn = lifetime(example)
    assert drawn is not None
    for mode, role in ROLES.items():
        assert drawn.svg.count(f">{mode} ({role})<") == 1
    rows = {row[0]: row for row in glance(example).rows}
    ready = example["modes"]["cuda_graph"]["startup"]["cold"]["ready_s"]
    assert list(rows) == [f"{mode}: {role}" for mode, role in ROLES.items()]
    assert f"{ready:.2f} s" in rows["cuda_graph: shorter lives"]
    assert "248 MiB" in rows["compile_cuda_graph: longer lives"]


def test_eager_as_the_mode_of_shorter_lives_is_drawn_once(example: dict[str, Any]) -> None:
    example["verdict"]["shorter"] = "eager"
    drawn = lifetime(with_runner_up(example, "eager"))
    assert drawn is not None
    assert roles(example)["eager"] == "shorter lives, runner-up, baseline"
    assert drawn.svg.count(">eager (") == 1
    assert [row[0] for row in glance(example).rows].count("eager: shorter lives, runner-up, baseline") == 1


def test_a_study_without_spans_takes_the_shorter_life_from_its_lifetimes(example: dict[str, Any]) -> None:
    for key in ("spans", "shorter", "configurations"):
        del example["verdict"][key]
    assert roles(example)["cuda_graph"].startswith("shorter lives")
    assert switch(example).startswith("A worker that lives 1 h or less should run cuda_graph.")
    assert [found.title for found in configurations(example)] == ["compile_cuda_graph: longer lives"]


def test_shorter_lives_say_until_when_why_undecided_and_what_turns_it(example: dict[str, Any]) -> None:
    choice = example["verdict"]["choices"]["3600"]["2"]
    choice |= {"mode": "undecided", "reason": "completions of a, b are not told apart"}
    spans = [("cuda_graph", 7.4), ("undecided", 1000.0), ("compile_cuda_graph", 7200.0)]
    example["verdict"]["spans"]["2"] = {"cold": [{"mode": mode, "from_s": from_s} for mode, from_s in spans]}
    said = "cuda_graph up to 16.7 min cold. Then undecided: completions of a, b are not told apart. "
    assert switch(example) == said + "From 120 min cold on compile_cuda_graph: completions within 1 %, and its p99 TPOT is lower."


@pytest.mark.parametrize("spans", [["compile_cuda_graph"], ["undecided"], ["compile_cuda_graph", "undecided"]])
def test_nothing_is_said_of_shorter_lives_where_no_span_leads_to_the_recommended_mode(spans: list[str], example: dict[str, Any]) -> None:
    example["verdict"]["spans"]["2"] = {"cold": [{"mode": mode, "from_s": 7.4 * (1 + index)} for index, mode in enumerate(spans)]}
    assert switch(example) == ""
    assert lifetime(example) is not None


def test_what_to_copy_is_given_for_longer_and_shorter_lives_and_a_short_runner_up(example: dict[str, Any]) -> None:
    example["verdict"]["configurations"] |= {"dynamo": "step = 1"}
    found = configurations(with_runner_up(example, "dynamo"))
    assert [one.title for one in found] == [f"{mode}: {role}" for mode, role in list(ROLES.items())[:3]]
    assert found[1].source == "public API: https://docs.pytorch.org/docs/stable/notes/cuda.html"
    example["verdict"]["configurations"]["dynamo"] = "line\n" * 13
    assert len(configurations(example)) == 2


def test_every_saving_comes_from_the_factorial_of_the_headline(example: dict[str, Any]) -> None:
    assert factorials(example)[0] == "inductor_manual"
    example["attribution"]["a_first_by_name"] = json.loads(json.dumps(example["attribution"]["inductor_manual"]))
    assert "decode batch 1, inductor_manual" in why(example)
    versus = example["modes"]["compile_cuda_graph"]["steady_state"]["sequence"]["vs_baseline"]
    versus["factorial"] = "inductor_trees"
    assert factorials(example)[0] == "inductor_trees"


def test_a_pair_that_two_factorials_measured_is_a_check_with_both_numbers(example: dict[str, Any]) -> None:
    one = {"speedup": 1.78, "low": 1.7, "high": 1.9, "verdict": "faster", "factorial": "inductor_manual"}
    other = one | {"speedup": 1.5, "low": 1.4, "high": 1.6, "factorial": "inductor_trees"}
    example["modes"]["compile"]["repeats"] = {"sequence": {"speedups": [one, other], "agree": False}}
    row = next(row for row in repeats(example).rows if row[0] == "compile, whole step sequence")
    assert row[1:] == ["1.78× [1.70, 1.90] faster", "inductor_manual", "1.50× [1.40, 1.60] faster", "inductor_trees", "disagree"]


def test_the_first_screen_names_factorials_only_where_they_differ(example: dict[str, Any]) -> None:
    assert "timed in" not in glance(example).columns
    example["modes"]["cuda_graph"]["steady_state"]["sequence"]["vs_baseline"]["factorial"] = "inductor_trees"
    found = glance(example)
    assert [row[-1] for row in found.rows] == ["inductor_manual", "inductor_trees", "–"]
    assert found.columns[-1] == "timed in"
