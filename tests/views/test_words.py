"""Numbers in words."""

from __future__ import annotations

import math

import pytest

from stages.views import words
from stages.views.figures.coverage import binned


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (words.microseconds(1234.5), "1,230 µs"),
        (words.microseconds(0.12345), "0.123 µs"),
        (words.microseconds(25_000), "25.0 ms"),
        (words.microseconds(12_000_000), "12.0 s"),
        (words.seconds(0.5), "0.500 s"),
        (words.seconds(412), "412 s"),
        (words.seconds(3600), "60.0 min"),
        (words.chosen_seconds(86400), "1 d"),
        (words.chosen_seconds(90), "90 s"),
        (words.size(3 * 2**29), "1.50 GiB"),
        (words.size(12), "12.0 B"),
        (words.speedup(2), "2.00×"),
        (words.percent(0.421), "42.1 %"),
        (words.rate("0.5"), "0.5 requests/s"),
        (words.rate("saturation"), "saturation"),
        (words.plain(None), words.ABSENT),
        (words.plain(math.inf), words.ABSENT),
        (words.plain(True), words.ABSENT),
        (words.significant(999.9), "1,000"),
        (words.significant(-0.0123), "-0.0123"),
        (words.clean("a\nb\x1b[0m\u202e"), "a b[0m"),
    ],
)
def test_a_number_reads_as_people_write_it(shown: str, expected: str) -> None:
    assert shown == expected


def test_a_long_strip_keeps_every_path_visible() -> None:
    runs = [("replayed", 10.0), ("compiled", 1.0)] * 2000 + [("fallback", 1.0)]
    bins = binned(runs)
    assert len(bins) <= 240
    assert sum(width for width, _ in bins) == pytest.approx(2000 * 11 + 1)
    assert all(sum(shares.values()) == pytest.approx(1) for _, shares in bins)
    assert bins[-1][1]["fallback"] > 0.1


def test_a_short_strip_is_drawn_as_it_is() -> None:
    assert binned([("compiled", 3.0), ("compiled", 2.0), ("replayed", 1.0)]) == [(5.0, {"compiled": 1.0}), (1.0, {"replayed": 1.0})]
