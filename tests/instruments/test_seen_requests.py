"""Requests from the steps that were seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.core.errors import UserError
from stages.instruments.seen_requests import requests_of, write_requests
from stages.instruments.token_shapes import Seen
from stages.traces.canonical import Canonical


def seen(*steps: tuple[float, int, int]) -> list[Seen]:
    return [Seen(at_s, sequences, tokens, 100) for at_s, sequences, tokens in steps]


def lengths(*steps: tuple[float, int, int]) -> list[tuple[float, int, int]]:
    return [(round(one.arrival_s, 6), one.prompt_tokens, one.output_tokens) for one in requests_of(seen(*steps))]


def test_prefill_is_an_arrival_and_each_decode_step_a_token_of_every_active_request() -> None:
    steps = ((5.0, 1, 12), (5.1, 1, 1), (5.2, 1, 20), (5.3, 2, 1), (5.4, 2, 1))
    assert lengths(*steps) == [(0.0, 12, 4), (0.2, 20, 3)]


def test_oldest_request_has_finished_when_a_step_has_fewer_sequences() -> None:
    assert lengths((0, 1, 12), (1, 1, 20), (2, 2, 1), (3, 1, 1), (4, 1, 1)) == [(0, 12, 2), (1, 20, 4)]


def test_batch_of_prompts_arrives_at_once() -> None:
    assert lengths((0, 3, 7), (1, 3, 1)) == [(0, 7, 2)] * 3


def test_padded_step_gives_active_requests_one_token_each() -> None:
    assert lengths((0, 1, 12), (1, 8, 1), (2, 8, 1)) == [(0, 12, 3)]


def test_decode_without_a_prompt_begins_requests_of_one_token() -> None:
    assert lengths((0, 2, 1), (1, 2, 1), (2, 1, 9), (3, 3, 1)) == [(0, 1, 3), (0, 1, 3), (2, 9, 2)]


def test_written_trace_is_read_as_it_was(tmp_path: Path) -> None:
    requests = requests_of(seen((7.0, 1, 12), (7.25, 1, 20), (7.5, 2, 1)))
    assert write_requests(tmp_path / "served.csv", requests) == 2
    assert Canonical("canonical", str(tmp_path / "served.csv")).requests() == requests


@pytest.mark.parametrize("steps", [(), ((0.0, 4, 9), (1.0, 4, 1))])
def test_fewer_than_two_arrival_times_are_no_trace(steps: tuple[tuple[float, int, int], ...], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs prompts that arrive at two times at least"):
        write_requests(tmp_path / "served.csv", requests_of(seen(*steps)))
    assert not (tmp_path / "served.csv").exists()
