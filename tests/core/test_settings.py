"""params.yaml: every key has a type and a range, and a wrong one is one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from stages.core import paths
from stages.core.errors import UserError
from stages.core.settings import read_params

PARAMS = {"name": "a", "model": "tiny", "trace": "smoke", "modes": ["eager"], "factorials": [], "measure": "smoke"}


def written(folder: Path, **changes: Any) -> Path:
    file = folder / "params.yaml"
    file.write_text(yaml.safe_dump({key: value for key, value in {**PARAMS, **changes}.items() if value != "absent"}))
    return file


def test_a_number_in_quotes_is_told_from_one(tmp_path: Path) -> None:
    file = written(tmp_path)
    file.write_text(f"{file.read_text()}device_memory_bytes: '1e9'\n")
    with pytest.raises(UserError, match=r"device_memory_bytes: must be a whole number or null; got '1e9'. Take the quotes away."):
        read_params(file)


def test_params_of_the_repository_are_valid() -> None:
    assert read_params(paths.root() / "params.yaml").modes[0] == "eager"


def test_a_study_without_the_baseline_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="modes: must list eager, the baseline"):
        read_params(written(tmp_path, modes=["compile"]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "absent"}, "params.yaml: name: must be given"),
        ({"modell": "tiny"}, "params.yaml: modell: must be a known key; got tiny. Did you mean model\\? Keys here: name, "),
        ({"modes": "eager"}, r"params.yaml: modes: must be a list of texts like \[a, b\]; got eager. Fix"),
        ({"modes": None}, "params.yaml: modes: must be a list of texts .*; got null"),
        ({"modes": {"a": 1}}, "params.yaml: modes: must be a list of texts "),
        ({"arrival_rates": 3}, r"params.yaml: arrival_rates: must be a list of values like \[1, 2\]; got 3"),
        ({"name": ["x"]}, "params.yaml: name: must be text; got "),
        ({"slo": {"ttft_ms": "fast"}}, "params.yaml: slo.ttft_ms: must be a number; got fast"),
        ({"slo": {"ttft_ms": None}}, "params.yaml: slo.ttft_ms: must be a number; got null"),
        ({"device_memory_bytes": 1.5}, "params.yaml: device_memory_bytes: must be a whole number or null; got 1.5"),
        ({"modes": ["eager", ["compile"]]}, r"params.yaml: modes: must hold single values \(list\[str\]\); got "),
        ({"overrides": [["seed=1"]]}, "params.yaml: overrides: must hold single values"),
        ({"name": ""}, "name: must be one line of 1 to 100 characters; got "),
        ({"name": "two\nlines"}, "name: must be one line"),
        ({"slo": {"z": 1}}, "params.yaml: slo.z: must be a known key; got 1. Keys here: ttft_ms, tpot_ms."),
        ({"device_memory_bytes": 10**30}, "device_memory_bytes: must be at most 1e\\+15"),
        ({"arrival_rates": [10**400]}, "arrival_rates: must be positive numbers"),
        ({"arrival_rates": [1e300]}, "arrival_rates: must be positive numbers .*; got 1e"),
        ({"lifetimes_s": [1e10]}, "lifetimes_s: must be at most 1e\\+09 s; got 10000000000"),
        ({"modes": []}, "modes: must name at least one; "),
        ({"modes": ["eager", "eager"]}, "modes: must not list anything twice; got eager. Remove"),
        ({"factorials": ["x", "x"]}, "factorials: must not list anything twice"),
        ({"device": "gpu"}, "device: must be one of auto, cpu, cuda; got gpu"),
        ({"precision": "fp8"}, "precision: must be one of fp32, bf16; got fp8"),
        ({"device_memory_bytes": -1}, "device_memory_bytes: must be positive and finite; got -1"),
        ({"device_memory_bytes": "all"}, "device_memory_bytes: must be a whole number or null; got all"),
        ({"slo": {"ttft": 1}}, "slo.ttft: "),
        ({"slo": {"ttft_ms": 0}}, "slo.ttft_ms: must be positive and finite; got 0"),
        ({"slo": {"tpot_ms": float("inf")}}, "slo.tpot_ms: must be .*; got inf"),
        ({"slo": {"tpot_ms": float("nan")}}, "slo.tpot_ms: must be .*; got nan"),
        ({"slo": 5}, "params.yaml: slo: must be a mapping of the keys ttft_ms, tpot_ms; got 5"),
        ({"arrival_rates": []}, "arrival_rates: must "),
        ({"arrival_rates": [12.34567, 12.34568]}, "arrival_rates: must not list anything twice; got 12.3457"),
        ({"arrival_rates": [4, 4.0]}, "arrival_rates: must not list anything twice; got 4"),
        ({"lifetimes_s": [1e6, 1000001]}, "lifetimes_s: must not list anything twice; got 1e\\+06"),
        ({"arrival_rates": ["fast"]}, "arrival_rates: must be positive numbers .*; got fast"),
        ({"arrival_rates": [0]}, "arrival_rates: must be positive numbers"),
        ({"arrival_rates": [True]}, "arrival_rates: must be positive numbers"),
        ({"arrival_rates": [float("inf")]}, "arrival_rates: must be positive numbers"),
        ({"arrival_rates": [float("nan")]}, "arrival_rates: must be positive numbers"),
        ({"lifetimes_s": [60, 0]}, "lifetimes_s: must be positive and finite; got 0"),
        ({"lifetimes_s": [float("inf")]}, "lifetimes_s: must be .*; got inf"),
        ({"lifetimes_s": []}, "lifetimes_s: must "),
        ({"lifetimes_s": ["long"]}, r"lifetimes_s\[0\]: must be a number; got long"),
        ({"gate": {"base": "x"}}, "gate.base: "),
        ({"overrides": "model.seed=1"}, "overrides: "),
    ],
)
def test_wrong_params_are_one_user_error(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message) as error_info:
        read_params(written(tmp_path, **changes))
    assert not re.search(r"\n|Node|Config|not a subclass|Params|Slo", str(error_info.value))  # words of the libraries


@pytest.mark.parametrize("text", ["1e9", "1.0e+9", "1000000000.0", "1_000_000_000"])
def test_a_whole_number_may_be_written_with_an_exponent_or_a_point(tmp_path: Path, text: str) -> None:
    file = written(tmp_path)
    file.write_text(f"{file.read_text()}device_memory_bytes: {text}\n")
    found = read_params(file).device_memory_bytes
    assert (found, type(found)) == (10**9, int)


@pytest.mark.parametrize("text", ["", "- a\n", "a: [", "a: ${nothing}", "just words", "\x00"])
def test_file_that_is_no_mapping_is_one_user_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "params.yaml"
    file.write_text(text)
    with pytest.raises(UserError, match=r"params.yaml: |must be"):
        read_params(file)


def test_file_that_is_not_text_is_one_user_error(tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(UserError, match=r"must be YAML"):
        read_params(tmp_path / "params.yaml")


def test_folder_is_one_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"must be a YAML file; got a folder"):
        read_params(tmp_path)


def test_missing_file_is_one_user_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"must exist; got no such file"):
        read_params(tmp_path / "params.yaml")


@pytest.mark.parametrize("text", ["3", "true", "1.5"])
def test_a_file_that_holds_one_value_is_one_user_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "params.yaml").write_text(text)
    with pytest.raises(UserError, match=r"params.yaml: must be a mapping or a list; got "):
        read_params(tmp_path / "params.yaml")
