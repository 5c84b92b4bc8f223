"""Tables of coverage, churn and advice, and the churn curve, from a study that was written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from stages.views.bundles import of_faults, of_slower
from stages.views.figures.churn import churn as churn_curve
from stages.views.figures.churn import curve
from stages.views.sections import sections
from stages.views.tables.coverage import advice, churn, graphs, shares
from stages.views.tables.table import Table

OPTION = "--compilation-config '{\"cudagraph_capture_sizes\": [1, 8]}'"


def window(steps: int, **events: int) -> dict[str, int | float]:
    return {"num_steps": steps, "num_recordings": 0, "num_captures": 0, "num_recompiles": 0, "wall_s": 0.1} | events


@pytest.fixture
def study() -> dict[str, Any]:
    coverage = {
        "steps_walked": 150,
        "steps_in_trace": 700,
        "shares": {"num_steps": {"replayed": 0.9, "recorded": 0.1}, "num_tokens": {"replayed": 1.0}, "wall_s": {"replayed": 0.5}},
        "padding_waste": {"decode": 0.25},
        "unused_sizes": {"decode": [4, 16]},
        "past_the_largest": {"prefill": 0, "decode": 3},
        "churn": {
            "verdict": "not_settled",
            "settled_after_steps": None,
            "num_events": 9,
            "events_per_1000_steps": 60.0,
            "wall_s": 0.2,
            "windows": [window(100, num_recordings=7), window(50, num_captures=1, num_recompiles=1)],
        },
        "memory_growth": {
            "reserved_bytes": {"verdict": "grows", "bytes_per_1000_steps": 2**20},
            "allocated_bytes": {"verdict": "steady", "bytes_per_1000_steps": 0},
        },
        "adapters": {"num_adapters": 3, "num_switches": 40, "paths_after_switch": {"replayed": 40}},
        "advice": {
            "capture_sizes": [1, 8],
            "decode_s": 1.5,
            "planned_decode_s": 1.49,
            "dropped_sizes": [4],
            "startup_s_saved": 12.0,
            "bytes_saved": 3 * 2**20,
            "vllm_option": OPTION,
        },
    }
    memory = {"graphs": [{"shape": "decode/8", "pool_bytes": 2**21, "outside_allocator_bytes": 0}]}
    trees = {"status": "ok", "claim": {"transform": "inductor", "replay": "trees"}, "coverage": coverage, "memory": memory}
    eager = {"status": "ok", "claim": {"transform": "none", "replay": "none"}, "coverage": {"advice": coverage["advice"]}, "memory": {}}
    modes = {"eager": eager, "trees": trees}
    return {"schema_version": 1, "name": "by hand", "baseline": "eager", "modes": modes, "verdict": {}, "attribution": {}}


def only_row(table: Table) -> dict[str, str]:
    (row,) = table.rows
    return dict(zip(table.columns, row, strict=True))


def test_shares_padding_and_sizes_are_told(study: dict[str, Any]) -> None:
    assert only_row(shares(study)) == {
        "mode": "trees",
        "steps walked": "150 of 700",
        "of steps": "replayed 90.0 %, recorded 10.0 %",
        "of tokens": "replayed 100.0 %",
        "of time": "replayed 50.0 %",
        "padding": "decode 25.0 %",
        "sizes never used": "decode 4 16",
        "steps past the largest": "prefill 0, decode 3",
    }


def test_churn_memory_and_adapters_are_told(study: dict[str, Any]) -> None:
    row = only_row(churn(study))
    assert (row["verdict"], row["events"], row["per 1,000 steps"]) == ("not settled", "9", "60.0")
    assert row["memory"] == "reserved grows 1.00 MiB a 1,000 steps"
    assert row["adapters"] == "40 switches among 3; the step after: replayed 40"


def test_advice_has_start_up_memory_and_the_option_of_vllm(study: dict[str, Any]) -> None:
    row = only_row(advice(study))  # eager captures nothing: no advice
    assert row == {
        "mode": "trees",
        "capture sizes": "1 8",
        "decode steps": "1,500 ms",
        "with all planned": "1,490 ms",
        "start-up saved": "12.0 s",
        "memory saved": "3.00 MiB",
        "for vLLM": OPTION,
    }


def test_memory_of_each_graph_is_told(study: dict[str, Any]) -> None:
    assert only_row(graphs(study)) == {"mode, shape": "trees, decode/8", "graph pool": "2.00 MiB", "outside the allocator": "0 B"}


def test_curve_sums_up_events_along_the_steps(study: dict[str, Any]) -> None:
    assert curve(study, "trees") == [(0, 0), (100, 7), (150, 9)]
    assert curve(study, "eager") == []
    drawn = churn_curve(study)
    assert drawn
    assert drawn.alternative == "trees: 9 events in 150 steps."


def test_nothing_that_churned_is_no_figure(study: dict[str, Any]) -> None:
    study["modes"]["trees"]["coverage"]["churn"]["windows"] = [window(100)]
    assert churn_curve(study) is None


def test_section_has_both_figures_all_tables_and_the_profiler_s_command(study: dict[str, Any]) -> None:
    drawn = churn_curve(study)
    assert drawn
    by_key = {section.key: section for section in sections(study, {"churn": drawn})}
    assert [table.title for table in by_key["paths"].tables] == ["Coverage", "Churn", "Sizes to capture"]
    assert by_key["paths"].figures == [drawn]
    assert any(command.startswith("nsys profile") for command in by_key["paths"].commands)
    assert [table.title for table in by_key["memory"].tables] == ["Memory of captured graphs"]


def test_modes_with_a_fault_and_slower_ones_say_where_their_bundle_comes_from(study: dict[str, Any]) -> None:
    study["modes"]["trees"]["evidence"] = {"verdict": "refuted", "reasons": ["0 of 40 steps replayed"]}
    slow = {"decode": {"1": {"vs_baseline": {"verdict": "slower"}}, "8": {"vs_baseline": {"verdict": "faster"}}}, "sequence": None}
    study["modes"]["dynamo"] = {"status": "ok", "evidence": {"verdict": "confirmed"}, "steady_state": slow}
    (fault,) = of_faults(study)
    assert fault == "trees, refuted: `python -m stages.bundle --mode trees` writes a script that shows it to build/bundles/trees/"
    (slower,) = of_slower(study)
    assert slower.startswith("dynamo, slower than eager at decode 1: `python -m stages.bundle --mode dynamo`")


def test_older_studies_have_no_rows(study: dict[str, Any]) -> None:
    study["modes"] = {"eager": {"status": "ok", "coverage": {"steps_walked": 3}}}
    assert [list(table(study).rows) for table in (shares, churn, advice, graphs)] == [[], [], [], []]
