"""Pauses of Python's garbage collector: counted while watched, and gone for what was frozen."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from stages.instruments.gc_pauses import NOTABLE_S, watched


@pytest.fixture(autouse=True)
def _thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_only_a_full_collection_counts_as_one_and_nothing_counts_afterwards() -> None:
    with watched() as pauses:
        gc.collect(0)
        gc.collect()
    gc.collect()
    found = pauses.found()
    assert (len(pauses.pauses_s) >= 2, found["num_full"]) == (True, 1)
    assert found["longest_ms"] == pytest.approx(1e3 * max(pauses.pauses_s))
    assert found["total_ms"] == pytest.approx(1e3 * sum(pauses.pauses_s))


def test_a_notable_pause_is_told_once() -> None:
    with watched() as pauses:
        pauses.pauses_s.append(NOTABLE_S / 2)
        assert not pauses.notable_since()
        pauses.pauses_s.append(NOTABLE_S)
        assert pauses.notable_since()
        assert not pauses.notable_since()


def test_frozen_objects_are_not_walked_again() -> None:
    held = [[number] for number in range(300_000)]
    with watched() as walked:
        gc.collect()
    with watched(freeze=True) as spared:
        gc.collect()
    assert len(held) == 300_000
    assert spared.found()["longest_ms"] < walked.found()["longest_ms"] / 4
