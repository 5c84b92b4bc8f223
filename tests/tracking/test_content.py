"""Names and values that MLflow accepts."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from stages.tracking.content import flat, milliseconds, numbers, part, shortened


def test_every_number_of_a_document_is_found_under_its_path() -> None:
    assert numbers({"phases": {"load_s": 1.5}, "proved": True, "calls_s": [1, 2], "proof": "listing"}) == {
        "phases_load_s": 1.5,
        "proved": 1.0,
    }


def test_configuration_has_one_param_a_leaf_and_lists_stay_whole() -> None:
    found = flat({"name": "tiny", "plan": {"sizes": [1, 2], "empty": {}}}, "model")
    assert found == {"model.name": "tiny", "model.plan.sizes": "[1, 2]", "model.plan.empty": "{}"}


@given(st.text(min_size=1))
def test_any_name_becomes_one_that_mlflow_accepts(name: str) -> None:
    assert re.fullmatch(r"[\w\-.: ]+", part(name), re.ASCII)


def test_names_that_need_the_same_change_stay_apart() -> None:
    assert part("a@b") != part("a%b")
    assert part("decode/8") == "decode_8"


def test_text_is_cut_with_a_mark() -> None:
    assert shortened("abcdefghij", 8) == "abcd ..."
    assert shortened("abc", 8) == "abc"


def test_time_without_zone_counts_as_utc() -> None:
    assert milliseconds("1970-01-01T00:00:01.500") == milliseconds("1970-01-01T00:00:01.500+00:00") == 1500
