from __future__ import annotations

from pathlib import Path

import pytest

from stages.core.errors import UserError
from stages.traces.canonical import Canonical

HEADER = "request_id,arrival_s,prompt_tokens,output_tokens\n"


def read(folder: Path, text: str | bytes) -> list[tuple[int, float, int, int]]:
    path = folder / "trace.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    requests = Canonical("canonical", str(path)).requests()
    return [(r.request_id, r.arrival_s, r.prompt_tokens, r.output_tokens) for r in requests]


def test_columns_are_read_by_name_and_the_optional_ones_are_allowed(tmp_path: Path) -> None:
    text = "output_tokens,source,arrival_s,request_id,adapter_id,prompt_tokens\n7,log,0,5,1,30\n8,log,1.5,6,2,40"
    assert read(tmp_path, text) == [(5, 0.0, 30, 7), (6, 1.5, 40, 8)]


def test_arrivals_count_from_the_first_one(tmp_path: Path) -> None:
    assert [line[1] for line in read(tmp_path, HEADER + "0,10.25,1,1\n1,12,1,1\n")] == [0.0, 1.75]


def test_a_byte_order_mark_blank_lines_and_crlf_are_accepted(tmp_path: Path) -> None:
    assert len(read(tmp_path, b"\xef\xbb\xbf" + (HEADER + "0,0,1,1\n\n1,1,1,1\n").replace("\n", "\r\n").encode())) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "column request_id: must be in the header once; got an empty file"),
        (HEADER, "must have at least one request; got no rows"),
        (HEADER + "\n\n", "must have at least one request; got no rows"),
        (HEADER.replace("prompt_tokens", "prompts") + "0,0,1,1\n", "line 1, column prompt_tokens: must be in the header once"),
        (HEADER.replace("\n", ",arrival_s\n") + "0,0,1,1,0\n", "column arrival_s: must be in the header once"),
        (HEADER.replace("\n", ",cost\n") + "0,0,1,1,0\n", "column cost: must be one of request_id"),
        (HEADER + "0,0,1\n", "line 2: must have 4 cells; got 3"),
        (HEADER + "0,0,1,1,1\n", "line 2: must have 4 cells; got 5"),
        (HEADER + "0,0,1,1\n1,0,1,-2\n", "line 3, column output_tokens: must be a whole number of tokens, from 1"),
        (HEADER + "0,0,0,1\n", "line 2, column prompt_tokens: must be a whole number of tokens, from 1"),
        (HEADER + "0,0,1.5,1\n", "line 2, column prompt_tokens: must be a whole number of tokens; got 1.5"),
        (HEADER + "0,0," + "9" * 5000 + ",1\n", "line 2, column prompt_tokens: must be a whole number of tokens, from 1"),
        (HEADER + "0,0,²,1\n", "line 2, column prompt_tokens: must be a whole number of tokens"),
        (HEADER + "0,soon,1,1\n", "line 2, column arrival_s: must be a number of seconds; got soon"),
        (HEADER + "0,1_0,1,1\n", "line 2, column arrival_s: must be a number of seconds; got 1_0"),
        (HEADER + "0,nan,1,1\n", "line 2, column arrival_s: must be a number of seconds from 0"),
        (HEADER + "0,1e308,1,1\n", "line 2, column arrival_s: must be a number of seconds from 0"),
        (HEADER + '0,0,1,1\n\n"1\n",1,1,x\n', "line 5, column output_tokens: must be a whole number of tokens; got x"),
        (HEADER + "0,-1,1,1\n", "line 2, column arrival_s: must be a number of seconds from 0 to 1e9"),
        (HEADER + "0,2,1,1\n1,1,1,1\n", "line 3, column arrival_s: must not be earlier than the line before"),
        (HEADER + "0,0,1,1\n0,1,1,1\n", "line 3, column request_id: must not repeat"),
        (HEADER + "-1,0,1,1\n", "line 2, column request_id: must be a whole number, from 0"),
        (HEADER + '0,0,"1,1\n', "must be a CSV file in UTF-8"),
        (b"\xff\xfe\x00", "must be a CSV file in UTF-8"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(tmp_path, text)


@pytest.mark.parametrize("name", ["none.csv", "."])
def test_a_path_without_a_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UserError, match=r"trace.path: must be an existing CSV file; got"):
        Canonical("canonical", str(tmp_path / name)).requests()


def test_its_file_counts_as_configuration(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text(HEADER, encoding="utf-8")
    assert Canonical("canonical", str(path)).files() == [path]
