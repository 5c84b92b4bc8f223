from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from stages.core.build import build
from stages.core.errors import UserError
from stages.core.paths import root
from stages.traces.azure import Azure

HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens\n"
FIRST = "2023-11-16 18:15:46.6805900,374,44\n"


def published(**changes: Any) -> Azure:
    """The trace of conf/trace/azure.yaml. There is no skip: without a copy of the file these tests fail."""
    node = OmegaConf.to_container(OmegaConf.load(root() / "conf/trace/azure.yaml"))
    assert isinstance(node, dict)
    trace = build({**{str(key): value for key, value in node.items()}, **changes}, "trace")
    assert isinstance(trace, Azure)
    return trace


def test_published_file_has_its_19366_requests() -> None:
    requests = published(window_s=4000).requests()
    assert len(requests) == 19_366
    assert requests[-1].arrival_s == pytest.approx(3502, abs=1)


def test_first_minute_is_191_requests_with_172k_and_44k_tokens() -> None:
    requests = published().requests()
    assert len(requests) == 191
    assert sum(r.prompt_tokens for r in requests) == pytest.approx(172_000, rel=0.01)
    assert sum(r.output_tokens for r in requests) == pytest.approx(44_000, rel=0.01)
    assert requests[1].arrival_s == pytest.approx(4.3145790, abs=1e-9)


def test_a_later_window_is_numbered_and_timed_from_its_first_request() -> None:
    requests = published(start_s=60, window_s=30).requests()
    assert (requests[0].request_id, requests[0].arrival_s) == (0, 0)
    assert requests[-1].arrival_s <= 30
    assert requests == sorted(requests, key=lambda r: r.arrival_s)


def test_windows_next_to_each_other_share_no_request() -> None:
    halves = [published(start_s=start, window_s=30).requests() for start in (0, 30)]
    assert sum(map(len, halves)) == 191


def test_a_changed_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + FIRST)
    with pytest.raises(UserError, match="must have sha256 2f1e5b66"):
        published(path=str(path)).requests()


def test_a_given_digest_is_accepted(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + FIRST)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert len(Azure(path=str(path), sha256=digest).requests()) == 1


def test_a_missing_file_names_every_place_looked_at() -> None:
    trace = Azure(search_paths=["data/none_a.csv", "data/none_b.csv"])
    with pytest.raises(UserError, match=r"trace.path: must be an existing file; got .*none_a.csv, .*none_b.csv.*README"):
        trace.requests()


def test_a_given_path_is_never_replaced_by_another_file(tmp_path: Path) -> None:
    other = written(tmp_path, HEADER + FIRST)
    with pytest.raises(UserError, match="must be an existing file"):
        Azure(path=str(tmp_path / "typo.csv"), search_paths=[str(other)]).requests()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("TIMESTAMP,ContextTokens\n2023-11-16 18:15:46.6,374\n", "line 1, column GeneratedTokens: must be in the header once"),
        (HEADER + "2023-11-16 18:15:46.68,-374,44\n", "line 2, column ContextTokens: must be a whole number of tokens, from 1"),
        (HEADER + FIRST + "2023-11-16 18:15:45.0,374,44\n", "line 3, column TIMESTAMP: must not be earlier than the line before"),
        (HEADER + "yesterday,374,44\n", "line 2, column TIMESTAMP: must be a time like"),
        (HEADER + "2023-13-16 18:15:46.0,374,44\n", "line 2, column TIMESTAMP: must be a time that exists"),
        (HEADER, "must have at least one request; got no rows"),
    ],
)
def test_a_broken_line_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        Azure(path=str(written(tmp_path, text))).requests()


def test_a_window_without_requests_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + FIRST + "2023-11-16 18:15:50.6805900,10,4")
    with pytest.raises(UserError, match=r"trace.start_s: must leave requests in the window; the file ends at 4 s; got 100"):
        Azure(path=str(path), start_s=100.0).requests()


@pytest.mark.parametrize("settings", [{"window_s": 0.0}, {"window_s": -1.0}, {"start_s": -1.0}, {"sha256": "abc"}])
def test_a_setting_that_cannot_be_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"trace.{next(iter(settings))}: must be"):
        Azure(**settings)


def test_its_file_counts_as_configuration(tmp_path: Path) -> None:
    path = written(tmp_path, HEADER + FIRST)
    assert Azure(search_paths=["data/none.csv", str(path)]).files() == [path]


def written(folder: Path, text: str) -> Path:
    path = folder / "trace.csv"
    path.write_text(text, encoding="utf-8")
    return path
