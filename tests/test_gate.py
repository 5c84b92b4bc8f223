"""gate: what stops `make repro`, and what does not."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stages.core.errors import UserError
from stages.core.settings import GateSettings, Params, Slo
from stages.gate import broken_modes, regressions, since
from stages.views import document
from stages.views.choices import CHOSEN, check_same_choices
from tests.tracking.study_folder import example, write_json


def params(*modes: str, baseline: str | None = None) -> Params:
    return Params(
        name="a",
        model="m",
        trace="t",
        modes=list(dict.fromkeys(("eager", *modes))),
        factorials=[],
        measure="quick",
        gate=GateSettings(baseline=baseline),
    )


def failures(study: dict[str, Any], params: Params) -> list[str]:
    differences = since(params.gate.baseline, study)
    return [*broken_modes(study, params.modes), *regressions(params.gate.baseline, differences)]


def failed_modes(study: dict[str, Any], *modes: str) -> list[str]:
    return [line.split(":")[0] for line in failures(study, params(*modes))]


def test_refuted_and_wrong_modes_fail_and_proved_and_unavailable_ones_do_not() -> None:
    study = example(("eager", "compile", "cudagraph_trees", "max_autotune_cuda_graph", "max_autotune"))
    assert failed_modes(study, *study["modes"]) == ["cudagraph_trees", "max_autotune_cuda_graph"]


def test_only_modes_that_were_asked_for_count() -> None:
    study = example(("eager", "compile", "cudagraph_trees"))
    assert failed_modes(study, "eager", "compile") == []


@pytest.mark.parametrize("status", ["failed", "skipped"])
def test_mode_that_broke_or_never_ran_fails(status: str) -> None:
    study = example(("eager", "compile"))
    study["modes"]["compile"] |= {"status": status, "reason": "warmup: it broke"}
    assert list(failures(study, params("compile"))) == [f"compile: {status}: warmup: it broke"]


def test_mode_that_the_study_lacks_fails() -> None:
    assert failed_modes(example(("eager",)), "eager", "compile") == ["compile"]


def test_regression_since_the_named_baseline_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPMODE_ROOT", str(tmp_path))
    before = example(("eager", "compile"))
    write_json(tmp_path / "reports" / "studies" / "release" / "study.json", before)
    after = copy.deepcopy(before)
    assert list(failures(after, params("compile", baseline="release"))) == []
    start = after["modes"]["compile"]["startup"]["warm"]
    start |= {key: start[key] * 3 for key in ("ready_s", "low_s", "high_s")}
    (line,) = failures(after, params("compile", baseline="release"))
    assert line.startswith("compile: ready from warm (s) became worse since release")


def test_load_that_collapsed_since_the_named_baseline_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPMODE_ROOT", str(tmp_path))
    after = example(("eager", "compile"))
    write_json(tmp_path / "reports" / "studies" / "release" / "study.json", after)
    load = after["modes"]["compile"]["load"]
    load |= {"max_goodput": None, "8": load["8"] | {"request_goodput": 0.0, "slo_attainment": 0.0}}
    assert failures(after, params("compile", baseline="release")) == [
        "compile: max goodput (1/s) became worse since release: 8 -> none",
        "compile: goodput at 8 (1/s) became worse since release: 8 -> 0",
    ]


def test_baseline_that_does_not_exist_is_a_user_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPMODE_ROOT", str(tmp_path))
    with pytest.raises(UserError, match="must be one of latest"):
        list(failures(example(("eager",)), params("eager", baseline="nobody")))


def test_a_study_of_other_choices_is_refused_and_missing_modes_are_not() -> None:
    study = example(("eager", "compile"))
    asked = params("compile", "dynamo")
    asked.name, asked.model, asked.trace = study["name"], study["model"]["name"], study["trace"]["name"]
    asked.precision = study["model"]["precision"]
    for key, value in document.part(study, "choices").items():
        if key in (*CHOSEN, "slo"):
            setattr(asked, key, Slo(**value) if key == "slo" else value)
    check_same_choices(study, asked, modes=False)
    for key, other in {"model": "another", "trace": "another", "precision": "fp32"}.items():
        with pytest.raises(UserError, match=f"{key}: must be what the study was made with"):
            check_same_choices(study, replace(asked, **{key: other}), modes=False)
