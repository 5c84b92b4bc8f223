"""One figure for two lives of a worker, and the table of rivals."""

from __future__ import annotations

from typing import Any

import pytest

from stages.views.figures.fleet import at, best_from, drawn_period, fleet
from stages.views.tables import rivals


def curve(ready_s: float, goodput: float) -> list[list[float]]:
    return [[0.0, 0.0], [ready_s, 0.0], [10_000.0, goodput * (10_000 - ready_s)]]


def test_completions_between_rows_are_interpolated() -> None:
    rows = curve(10.0, 4.0)
    assert (at(rows, 0.0), at(rows, 5.0), at(rows, 110.0), at(rows, 99_999.0)) == (0.0, 0.0, 400.0, 4.0 * 9_990)


def test_spans_begin_where_a_mode_comes_within_one_per_cent_of_the_best() -> None:
    spans = best_from({"eager": {"cold": curve(5.0, 4.0)}, "both": {"cold": curve(45.0, 8.0)}}, "cold")
    ((first, last),) = spans["eager"]
    assert first == pytest.approx(5.0, rel=0.03)
    assert last == pytest.approx(85.5, rel=0.03)  # 4 (L - 5) = 0.99 * 8 (L - 45)
    ((first, last),) = spans["both"]
    assert first == pytest.approx(84.5, rel=0.03)  # 8 (L - 45) = 0.99 * 4 (L - 5)
    assert last == pytest.approx(10_000.0)


def test_lifetimes_under_a_second_are_not_looked_at_beyond_the_longest() -> None:
    def short(goodput: float) -> list[list[float]]:
        return [[0.0, 0.0], [0.1, 0.0], [0.5, 0.4 * goodput]]

    spans = best_from({"fast": {"cold": short(8.0)}, "slow": {"cold": short(4.0)}}, "cold")
    assert spans == {"fast": [(0.5, 0.5)], "slow": []}


def test_a_mode_that_is_never_among_the_best_has_no_span() -> None:
    spans = best_from({"slow": {"cold": curve(5.0, 1.0)}, "fast": {"cold": curve(5.0, 2.0)}, "other": {}}, "cold")
    assert (spans["slow"], "other" in spans) == ([], False)
    assert best_from({"other": {}}, "warm") == {}


def test_figure_shows_ranked_modes_in_both_lives(example: dict[str, Any]) -> None:
    drawn = fleet(example)
    assert drawn
    assert drawn.title == "A long-lived worker, and one replaced every 10 min"
    assert "compile_cuda_graph" in drawn.svg
    assert "cudagraph_trees" not in drawn.svg, "refuted"
    assert "never among the best" in drawn.alternative or "among the best from" in drawn.alternative
    assert drawn == fleet(example)


def test_period_is_ten_minutes_or_the_next_longer_one_of_the_study(example: dict[str, Any]) -> None:
    assert drawn_period(example) == "600"
    for mode in example["modes"].values():
        costs = (mode.get("lifetime") or {}).get("replaced") or {}
        for period in [key for key in costs if float(key) >= 600]:
            del costs[period]
    assert drawn_period(example) == "60"


def test_no_figure_without_two_modes_to_compare(bare_study: dict[str, Any], example: dict[str, Any]) -> None:
    assert fleet(bare_study) is None
    example["modes"] = {"eager": example["modes"]["eager"]}
    assert fleet(example) is None


def test_table_names_the_mode_that_is_overtaken_last(example: dict[str, Any]) -> None:
    rows = {(row[0], row[1]): row[2:] for row in rivals.next_best(example).rows}
    cold, *_ = rows["compile_cuda_graph", "saturation"]
    assert cold.endswith("(cuda_graph)")
    assert " s" in cold or " min" in cold
    assert rows["compile", "2 requests/s"][0].startswith("never (")
    assert not [name for name, _ in rows if name == "cudagraph_trees"], "refuted"


def test_study_without_rivals_has_no_such_table(example: dict[str, Any]) -> None:
    for mode in example["modes"].values():
        (mode.get("lifetime") or {}).pop("next_best", None)
    assert not rivals.next_best(example).rows
