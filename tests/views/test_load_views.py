"""Who is fastest, the queue, the search, costs, hits, memory along the load, and two figures, from the example study."""

from __future__ import annotations

from typing import Any

import pytest

from stages.views.figures.goodput import goodput, points
from stages.views.figures.latency import latency
from stages.views.figures.pareto import Standing, frontier, of_mode, pareto
from stages.views.tables import load_detail, service, standing

MIB = 1 << 20


def run_of(example: dict[str, Any], mode: str = "compile", rate: str = "2") -> dict[str, Any]:
    found: dict[str, Any] = example["modes"][mode]["load"][rate]
    return found


def row(table: Any, first: str) -> dict[str, str]:
    """The row that begins with these words, by column."""
    (found,) = [cells for cells in table.rows if cells[0] == first]
    return dict(zip(table.columns, found, strict=True))


def test_winner_is_named_or_those_that_tie_are(example: dict[str, Any]) -> None:
    example["attribution"]["inductor_manual"]["winners"] = {
        "1": {"mode": "cuda_graph", "fastest": "cuda_graph", "tied": [], "least_speedup": 1.26, "num_compared": 4, "confidence": 0.9875},
        "8": {"mode": "undecided", "fastest": "a", "tied": ["b", "c"], "least_speedup": 1.001, "num_compared": 4, "confidence": 0.9875},
    }
    table = standing.winners(example)
    first = row(table, "inductor_manual, decode batch 1")
    assert (first["fastest"], first["closest other takes"], first["confidence of each"]) == ("cuda_graph", "1.26×", "98.8 %")
    second = row(table, "inductor_manual, decode batch 8")
    assert (second["fastest"], second["not told apart from it"]) == ("undecided (a in the mean)", "b, c")


def test_heat_says_who_went_on(example: dict[str, Any]) -> None:
    answer = example["attribution"]["inductor_manual"]
    answer["heat"] = {"compile": 1.0, "eager": 2.0}
    answer["went_on"] = ["compile"]
    assert [cells[1:] for cells in standing.heats(example).rows] == [["1.00 s", "yes"], ["2.00 s", "no"]]


def test_finalist_without_credit_is_named_and_not_compared(example: dict[str, Any]) -> None:
    answer = example["attribution"]["inductor_manual"]
    answer["heat"] = {"compile_cuda_graph": 1.0, "cuda_graph": 1.1, "compile": 1.2, "eager": 2.0}
    answer["cells"] = {"E": "eager", "C": "compile", "R": "cuda_graph", "CR": "compile_cuda_graph"}
    answer["cell_reasons"] = {"E": "eager: skipped: number 4 of the heat", "C": "compile: refuted: 3 recompilations"}
    answer["went_on"] = ["compile", "compile_cuda_graph", "cuda_graph"]
    answer["winners"] = {"sequence": {"fastest": "compile_cuda_graph", "tied": [], "least_speedup": 1.04}}
    (text,) = standing.direct(example)
    assert "compile_cuda_graph and cuda_graph met directly in fresh processes (compile went on too and cannot be credited): over" in text


def test_what_ended_the_sets_and_what_a_switch_costs_are_said(example: dict[str, Any]) -> None:
    example["attribution"] = {"f": {"num_sets": 3, "stopped": ["cap: 4", "cap: 4", "target: 0.2%"], "switch_us": {"eager": 40.0}}}
    assert standing.stopping(example).rows == [["f", "3", "2 sets: cap: 4; target: 0.2%", "eager 40.0 µs"]]


@pytest.mark.parametrize(
    ("tied", "said"), [([], "differ by 1.04×, the first is faster"), (["cuda_graph"], "are not told apart (1.04×)")], ids=["apart", "tied"]
)
def test_direct_comparison_is_said_in_a_sentence(tied: list[str], said: str, example: dict[str, Any]) -> None:
    answer = example["attribution"]["inductor_manual"]
    answer["heat"] = {"compile_cuda_graph": 1.0, "cuda_graph": 1.1, "eager": 2.0}
    answer["cells"] = {"E": "eager", "R": "cuda_graph", "CR": "compile_cuda_graph"}
    answer["cell_reasons"], answer["went_on"] = {"E": "eager: skipped: number 3 of the heat"}, ["compile_cuda_graph", "cuda_graph"]
    answer["winners"] = {"sequence": {"fastest": "compile_cuda_graph", "tied": tied, "least_speedup": 1.04}}
    (text,) = standing.direct(example)
    assert text == (
        "inductor_manual: of 3 modes in a heat, compile_cuda_graph and cuda_graph met directly in fresh processes:"
        f" over the sequence they {said}."
    )


def test_everything_that_hits_a_request_is_in_the_note_under_load(example: dict[str, Any]) -> None:
    assert all(word in service.load(example).note for word in ("compiled", "captured", "garbage"))


def test_clocks_and_conditions_are_said(example: dict[str, Any]) -> None:
    answer = example["attribution"]["inductor_manual"]
    answer["timer"] = {"agrees": False, "reason": "wall_us, launched is off by 2.00%", "spins": []}
    answer["conditions"] = ["blocks left out: 3 throttled of 48"]
    found = standing.conditions(example)
    assert "inductor_manual: the clocks are off: wall_us, launched is off by 2.00%" in found
    assert "inductor_manual: blocks left out: 3 throttled of 48" in found


def test_pattern_start_of_the_run_and_whole_time_of_requests_are_said(example: dict[str, Any]) -> None:
    run = run_of(example)
    run["steady"] = {"begin_s": 0.68, "end_s": 300.0, "num_sent": 598, "request_goodput": 1.99, "slo_attainment": 0.995}
    run |= {"process": "gamma", "num_completed": 590, "num_failed": 10, "num_never_begun": 4}
    found = row(load_detail.requests(example), "compile, 2 requests/s")
    counts = [found[key] for key in ("pattern", "sent", "completed", "never begun")]
    assert counts == ["gamma", "600", "590", "4"]
    after = [found[key] for key in ("ramp-up", "goodput after it, 1/s", "within SLO after it")]
    assert after == ["0.680 s", "1.99", "99.5 %"]
    times = [found[f"{what} {which}, ms"] for what in ("whole request", "in the queue") for which in ("p50", "p99")]
    assert times == ["680", "774", "10.9", "29.4"]


def test_queue_is_told_with_its_meaning(example: dict[str, Any]) -> None:
    run_of(example).update(queueing_share=0.8, queueing="Requests spend 80% of their time in the queue")
    assert row(load_detail.queues(example), "compile, 2 requests/s")["share of time in the queue"] == "80.0 %"


def test_search_lists_every_rate_that_was_tried(example: dict[str, Any]) -> None:
    probe = {"seed": 1, "request_goodput": 9.0, "slo_attainment": 0.5}
    tried = [{**probe, "arrival_rate_per_s": 20.0, "met": False}, {**probe, "arrival_rate_per_s": 10.0, "met": True}]
    example["modes"]["compile"]["load"]["search"] = tried
    found = [cells for cells in load_detail.search(example).rows if cells[0].startswith("compile,")]
    assert [(cells[0], cells[-1]) for cells in found] == [("compile, 10.0 requests/s", "yes"), ("compile, 20.0 requests/s", "no")]
    assert (20.0, 9.0) in points(example, "compile")


def test_cost_of_a_request_and_of_the_loop(example: dict[str, Any]) -> None:
    work = {"scheduling_us": 8.0, "sampling_us": 16.0, "bookkeeping_us": 7.0, "by_batch": {"1": 20.0, "64": 31.0, "8": 25.0}}
    run_of(example).update(energy_per_good_j=12.5, host_work=work)
    found = row(load_detail.costs(example), "compile, 2 requests/s")
    assert (found["energy a useful request, J"], found["at the largest batch"]) == ("12.5", "31.0 µs at 64")


def test_most_in_flight_stands_beside_the_limit_and_how_often_it_was_reached(example: dict[str, Any]) -> None:
    run_of(example).update(max_active=33, batch_histogram={"8": 30, "33": 10})
    found = row(load_detail.costs(example), "compile, 2 requests/s")
    assert [found[name] for name in ("in flight: most", "limit", "decode steps at it")] == ["33", "33", "25.0 %"]
    run_of(example)["batch_histogram"] = {"9": 1, "10": 3}
    found = row(load_detail.costs(example), "compile, 2 requests/s")
    assert [found[name] for name in ("in flight: most", "limit", "decode steps at it")] == ["10", "33", "0.0 %"]


def test_cache_that_binds_is_said_where_memory_is_limited(example: dict[str, Any]) -> None:
    run_of(example).update(max_active=33, batch_histogram={"8": 30, "33": 10})
    assert load_detail.cache_binds(example) == []  # all of the device: the limit is the plan's
    example["choices"]["device_memory_bytes"] = 5_000_000_000
    (text,) = load_detail.cache_binds(example)
    assert text.startswith("compile, 2 requests/s: the KV cache binds: 25% of the decode steps had all 33 sequences")
    run_of(example)["batch_histogram"] = {"8": 390, "33": 10}
    assert load_detail.cache_binds(example) == []


def test_client_that_notices_arrivals_late_is_said(example: dict[str, Any]) -> None:
    assert load_detail.self_check(example) == []
    run_of(example)["lateness_share"] = 0.018
    (text,) = load_detail.self_check(example)
    assert text.startswith("compile, 2 requests/s: arrivals were noticed late by 1.8% of the requests' time, above 1%")


def test_requests_that_were_hit_are_named(example: dict[str, Any]) -> None:
    rows = [cells for cells in load_detail.hits(example).rows if cells[0].startswith("compile, 2 requests/s")]
    assert [cells[:2] for cells in rows] == [["compile, 2 requests/s, request 3", "a recording"]]


def test_memory_that_grows_under_load_is_said(example: dict[str, Any]) -> None:
    samples = [[float(at), 1000 * MIB + at * MIB] for at in range(60)]
    run_of(example)["memory"] = {"samples": samples, "bytes_per_s": float(MIB), "verdict": "grows"}
    found = row(load_detail.memory_along(example), "compile, 2 requests/s")
    assert (found["at the start"], found["slope an hour"], found["verdict"]) == ("1,000 MiB", "3.52 GiB", "grows")


def test_goodput_is_drawn_against_the_rate_and_not_for_one_rate(example: dict[str, Any]) -> None:
    drawn = goodput(example)
    assert drawn is not None
    assert "compile: at most 8.00 requests/s within the limits" in drawn.alternative
    for mode in example["modes"].values():
        mode["load"] = {key: found for key, found in (mode.get("load") or {}).items() if key in ("2", "max_goodput")}
    assert goodput(example) is None


def test_frontier_keeps_what_nothing_beats_in_all_three() -> None:
    found = {
        "fast": Standing(12.0, 67.0, 4e9),
        "soon": Standing(6.0, 9.0, 3e9),
        "beaten": Standing(6.0, 12.0, 4e9),
        "equal": Standing(6.0, 9.0, 3e9),
    }
    assert frontier(found) == ["fast", "soon", "equal"]


def test_picture_needs_two_modes_with_all_three_numbers(example: dict[str, Any], bare_study: dict[str, Any]) -> None:
    drawn = pareto(example)
    assert drawn is not None
    assert "Not beaten in all three: " in drawn.alternative
    assert "<svg" in drawn.svg
    assert pareto(bare_study) is None
    del example["modes"]["compile"]["startup"]["cold"]
    assert of_mode(example, "compile") is None


def test_a_run_that_the_garbage_collector_held_up_says_so_with_the_remedy(example: dict[str, Any]) -> None:
    assert load_detail.collections(example) == []
    run_of(example)["gc"] = {"num_full": 1, "longest_ms": 262.4, "total_ms": 262.9}
    (said,) = load_detail.collections(example)
    assert "held the loop up for 262 ms at once (263 ms in all, 1 full collections)" in said
    assert "gc.freeze()" in said
    run_of(example)["gc"]["longest_ms"] = 9.9
    assert load_detail.collections(example) == []


def test_mode_that_only_some_panels_show_is_in_the_legend(example: dict[str, Any]) -> None:
    """As `dynamo` in a study whose factorial does not time it: its requests were drawn, and no name stood for the curve."""
    assert all(drawn_in(example, name) == 1 for name in ("eager", "compile"))
    example["modes"]["compile"]["steady_state"]["decode"] = {}
    assert all(drawn_in(example, name) == 1 for name in ("eager", "compile"))


def drawn_in(study: dict[str, Any], name: str) -> int:
    drawn = latency(study)
    assert drawn is not None
    return drawn.svg.count(f">{name}<")


def test_bytes_above_the_memory_limit_are_explained(example: dict[str, Any]) -> None:
    assert service.memory(example).note == ""
    example["choices"]["device_memory_bytes"] = 5_000_000_000
    assert "with the plan's" in service.memory(example).note
