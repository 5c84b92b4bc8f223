"""How the page writes a cell."""

from __future__ import annotations

import pytest

from stages.views.page import stacked_lines


@pytest.mark.parametrize(
    "text",
    ["confirmed", "--compilation-config '{\"cudagraph_capture_sizes\": [1, 16]}'", "open [1, 2", "kernel [void]"],
)
def test_text_without_an_interval_stays_whole(text: str) -> None:
    assert "<span" not in stacked_lines(text)


def test_interval_and_verdict_stand_below_the_value() -> None:
    assert stacked_lines("3.94× [1.93, 8.06] faster") == ('3.94× <span class="range">[1.93, 8.06]</span> <span class="range">faster</span>')


def test_markup_in_a_cell_is_escaped() -> None:
    assert "<b>" not in stacked_lines("<b> [1, 2]")
