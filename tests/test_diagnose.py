"""diagnose: the command on a small study, what it leaves alone, and what it says when it cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from stages import diagnose
from stages.core.settings import read_params
from tests.workers.small_study import SmallStudy, write_study


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    return write_study(tmp_path_factory.mktemp("small"), "eager", "dynamo", factorials=("inductor_manual",))


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_command_prints_bottleneck_ceilings_and_advice_and_leaves_the_study_alone(small: SmallStudy) -> None:
    before = files(small.folder)
    with small.start("diagnose") as process:
        text, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    first, bottleneck, replay, kernels, advice = text.splitlines()
    assert first.startswith("tiny in fp32, eager, on ")
    assert "-bound: of " in bottleneck
    assert "can save at most" in replay
    assert "can save less than" in kernels
    assert advice.startswith("advice ")
    assert files(small.folder) == before


def test_wrong_choice_is_one_line(small: SmallStudy, tmp_path: Path) -> None:
    wrong = SmallStudy(tmp_path)
    params = yaml.safe_load((small.home / "params.yaml").read_text(encoding="utf-8")) | {"model": "no_such_model"}
    (tmp_path / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    status, text = wrong.run("diagnose")
    assert (status, text.count("\n")) == (2, 1)
    assert "must name a file in conf/model/" in text


def test_steps_are_counted_by_padded_shape(small: SmallStudy) -> None:
    counts = diagnose.step_counts(small.study)
    assert sum(counts.values()) == small.study.plan.num_steps
    assert {shape.partition("/")[0] for shape in counts} == {"decode", "prefill"}


def test_floors_are_those_of_decode_shapes_that_the_cache_does_not_hold(small: SmallStudy) -> None:
    settings = small.study.settings("eager")
    ceilings = {"bandwidth_bytes_per_s": 1e9, "operations_per_s": 1e15, "l2_bytes": 1}
    found = diagnose.floors_us(settings, ceilings, ["decode/1", "decode/2", "prefill/32"], 16)
    assert found.keys() == {"decode/1", "decode/2"}
    assert found["decode/2"] > found["decode/1"] > 0
    assert diagnose.floors_us(settings, ceilings | {"l2_bytes": 1 << 40}, ["decode/1"], 16) == {}
    assert diagnose.floors_us(settings, None, ["decode/1"], 16) == {}
    assert read_params(small.home / "params.yaml").factorials == ["inductor_manual"]
