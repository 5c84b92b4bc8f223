"""What the first screen says of gains, and what a page says instead of a table that has nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stages.analysis.wording import seconds
from stages.views import markdown, page
from stages.views.certainty import certainty, shifted
from stages.views.configurations import configurations
from stages.views.figures.lifetime import lifetime, panel_ends_s
from stages.views.headline import context, price, why
from stages.views.roles import factorials, roles, switches
from stages.views.switching import switch
from stages.views.tables.glance import glance
from stages.views.tables.several import repeats
from stages.views.tables.steps import floors, no_floor


def test_savings_carry_their_interval(example: dict[str, Any]) -> None:
    total = example["attribution"]["inductor_manual"]["1"]["total"]
    total |= {"value": 2500.0, "low": 2000.0, "high": 3000.0}
    assert "save 2.50 ms [2.00, 3.00] a step in the mean (decode batch 1, inductor_manual)" in why(example)


def test_memory_limit_stands_on_the_first_screen_where_there_is_one(example: dict[str, Any]) -> None:
    assert "memory limit" not in [fact.name for fact in context(example)]
    example["choices"]["device_memory_bytes"] = 5_000_000_000
    (found,) = [fact.value for fact in context(example) if fact.name == "memory limit"]
    assert found == "4.66 GiB"


def test_without_replay_what_compiling_saves_is_said(cpu_study: dict[str, Any]) -> None:
    for answer in cpu_study["attribution"].values():
        answer["1"] |= {"total": None, "compiled_alone": {"value": 400.0, "low": None, "high": None}}
    assert "Compiling saves 0.400 ms a step in the mean (decode batch 1, inductor_manual)." in why(cpu_study)


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
    said += "From 120 min cold on compile_cuda_graph: its start costs under 1 % of the completions, then the lower p99 TPOT decides."
    slow = " At 0.5 requests/s, cold: eager, cuda_graph from 125 s, compile_cuda_graph from 70.1 min."
    even = example["modes"]["compile_cuda_graph"]["lifetime"]["break_even"]["2"]["cold"]
    even["answer"] = "at"
    assert switch(example) == said + slow
    even["answer"] = "never"
    assert switch(example) == f"{said} It is never ahead of eager in completions.{slow}"


def test_the_other_arrival_rate_is_the_same_where_modes_and_lifetimes_are(example: dict[str, Any]) -> None:
    spans = example["verdict"]["spans"]
    spans["0.5"] = json.loads(json.dumps(spans["2"]))
    assert switch(example).endswith(" At 0.5 requests/s: the same.")
    evens = example["modes"]["compile_cuda_graph"]["lifetime"]["break_even"]
    evens["2"]["cold"]["answer"], evens["0.5"]["cold"] = "never", {"answer": "at", "lifetime_s": 133.0}
    assert switch(example).endswith(" At 0.5 requests/s: the same, there ahead of eager from 133 s cold on.")
    evens["2"]["cold"]["answer"] = "at"
    spans["0.5"]["cold"][-1]["from_s"] *= 1.04
    assert switch(example).endswith(" At 0.5 requests/s: the same.")
    spans["0.5"]["warm"][-1]["from_s"] *= 1.06
    assert " At 0.5 requests/s, cold: " in switch(example)


def test_every_mode_of_shorter_lives_is_said_the_shortest_first(example: dict[str, Any]) -> None:
    along = {"cold": (7.4, 166.0, 1706.0), "warm": (6.1, 146.0, 323.0)}
    modes = ("dynamo", "eager", "compile_cuda_graph")
    example["verdict"]["spans"]["2"] = {
        cache: [{"mode": mode, "from_s": from_s} for mode, from_s in zip(modes, starts, strict=True)] for cache, starts in along.items()
    }
    assert switch(example).startswith("dynamo up to 166 s cold / 146 s warm, then eager up to 28.4 min cold / 5.38 min warm. From 28.4 min")


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


def test_the_page_says_it_in_one_note_with_the_numbers(example: dict[str, Any]) -> None:
    assert shifted(example) == ""
    shift = {"mode": "compile", "point": "decode/8", "least_us": 213.0, "most_us": 398.0, "num_shifted": 3, "of": 20}
    example["attribution"]["inductor_manual"]["speed_shift"] = shift
    example["attribution"]["inductor_trees"]["speed_shift"] = shift | {"mode": "eager", "most_us": 300.0, "num_shifted": 2, "of": 10}
    said = "The machine shifted its speed: equal work differs by over 30 % in 5 of 30 timings, most compile at decode batch 8, "
    assert f"{said}213 µs to 398 µs." in certainty(example)
    for choices in example["verdict"]["choices"].values():
        choices["2"]["mode"] = "undecided"
    assert certainty(example) == f"{said}213 µs to 398 µs."


def test_the_figure_goes_as_far_as_every_change_that_the_text_names(example: dict[str, Any]) -> None:
    spans = example["verdict"]["spans"]["2"]
    names = ["eager", "compile_cuda_graph", "cuda_graph"]
    named = [span["from_s"] for cache in ("cold", "warm") for span in spans[cache][1:]]
    near_s, far_s = panel_ends_s(example, names, "2")
    assert near_s < max(named) < far_s
    drawn = lifetime(example)
    assert drawn is not None
    assert ">worker lifetime, min<" in drawn.svg
    for at_s in named:
        assert seconds(at_s) in drawn.alternative
    for cache in ("cold", "warm"):
        for index, span in enumerate(spans[cache][1:]):
            span["from_s"] = 30.0 + index
    (end_s,) = panel_ends_s(example, names, "2")
    assert end_s > 31.0
    drawn = lifetime(example)
    assert drawn is not None
    assert "min<" not in drawn.svg
    assert "right:" not in drawn.caption


def test_a_study_without_spans_is_drawn_as_far_as_the_lifetimes_that_differ(example: dict[str, Any]) -> None:
    for key in ("spans", "shorter"):
        del example["verdict"][key]
    assert switches(example)[-1] == ("cold", 86400.0)
    assert panel_ends_s(example, ["eager", "compile_cuda_graph"], "2")[-1] > 86400.0


def test_the_price_is_the_same_on_the_terminal_and_on_the_page(example: dict[str, Any]) -> None:
    example["modes"]["compile_cuda_graph"]["memory"]["max_sequences"] -= 7
    found = glance(example)
    row = dict(zip(found.columns, next(row for row in found.rows if row[0].startswith("compile_cuda_graph: ")), strict=True))
    lost = next(column for column in found.columns if column.startswith("sequences lost of "))
    said = price(example)
    for text in (
        f"{row['ready cold']} cold, {row['ready warm']} warm",
        f"{row['graphs']} of graphs",
        f"p99 TPOT {row['p99 TPOT, 2 requests/s']} at 2 requests/s with",
    ):
        assert text in said
    assert f"{row[lost]} fewer concurrent sequences (of {lost.removeprefix('sequences lost of ')})" in said


def test_where_the_page_shows_a_median_and_no_memory_of_graphs_so_does_the_terminal(example: dict[str, Any]) -> None:
    example["modes"]["compile_cuda_graph"]["memory"]["graph_pool_bytes"] = 0
    for mode in example["modes"].values():
        for run in mode["load"].values():
            if isinstance(run, dict) and isinstance(run.get("tpot_ms"), dict):
                run["tpot_ms"]["p99"] = None
    found = glance(example)
    row = dict(zip(found.columns, found.rows[0], strict=True))
    assert row["graphs"] == "–"
    assert "graphs" not in price(example)
    assert f"p50 TPOT {row['p50 TPOT, 2 requests/s']} at 2 requests/s with compiles" in price(example)


def test_what_sequences_lost_are_is_said_below_the_table_that_has_them(example: dict[str, Any]) -> None:
    said = "Sequences lost: how many of those that fit into memory at once with eager no longer fit with the mode."
    for text in (page.render(example, {}), markdown.render(example, {})):
        assert text.split("Configuration to copy")[0].count(said) == 1
    for mode in example["modes"].values():
        mode["memory"] = None
    assert glance(example).note == ""


def test_the_recommended_mode_stands_first_also_where_another_comes_before_it_in_the_alphabet(example: dict[str, Any]) -> None:
    texts = example["verdict"]["configurations"]
    given = [list(texts.items()), list(texts.items())[::-1]]
    for order in given:
        example["verdict"]["configurations"] = dict(order)
        assert [one.title.partition(":")[0] for one in configurations(example)] == ["compile_cuda_graph", "cuda_graph"]


def test_the_tail_names_the_arrival_rate_that_has_enough_requests_for_it(example: dict[str, Any]) -> None:
    for mode in example["modes"].values():
        if "2" in mode["load"]:
            mode["load"]["2"]["tpot_ms"]["p99"] = None
    assert "p99 TPOT, 0.5 requests/s" in glance(example).columns


def test_a_start_that_was_not_warm_says_so_beside_its_time(example: dict[str, Any]) -> None:
    example["modes"]["compile_cuda_graph"]["startup"]["warm"] |= {"ready_s": 82.3, "verdict": "refuted"}
    found = glance(example)
    assert dict(zip(found.columns, found.rows[0], strict=True))["ready warm"] == "82.3 s (refuted)"


def test_what_makes_a_start_warm_stands_under_the_text_to_copy_of_modes_that_compile(example: dict[str, Any]) -> None:
    warm = {found.title.partition(":")[0]: found.warm for found in configurations(example)}
    assert warm["compile_cuda_graph"].startswith("Warm, ")
    assert "TORCHINDUCTOR_CACHE_DIR and TRITON_CACHE_DIR named folders" in warm["compile_cuda_graph"]
    assert "ptxas" not in warm["compile_cuda_graph"]
    assert warm["cuda_graph"] == ""
    example["environment"] |= {"ptxas": "13.0.88", "support": {"one_ptxas": {"supported": False, "why": ""}}}
    found = next(found for found in configurations(example) if found.title.startswith("compile_cuda_graph"))
    assert "TRITON_PTXAS_PATH named torch's ptxas (13.0.88)" in found.warm
