"""Drawing is a function of study.json alone."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from stages.core.errors import UserError
from stages.views.document import load
from stages.views.study_files import write_views
from tests.python_path import python_path

STUDIES = ("example", "hostile", "cpu_study", "bare_study")


def _bytes(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_drawing_twice_gives_the_same_bytes_in_any_process(example: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "study.json").write_text(json.dumps(example, sort_keys=True))
    write_views(example, tmp_path / "a")
    # a user's matplotlibrc must not show either
    (tmp_path / "matplotlibrc").write_text("font.size: 30\naxes.grid: True\n")
    command = [sys.executable, "-m", "stages.report", "--redraw", str(tmp_path / "b")]
    environment = {**os.environ, "PYTHONHASHSEED": "7", "MATPLOTLIBRC": str(tmp_path / "matplotlibrc"), **python_path(Path.cwd())}
    subprocess.run(command, check=True, env=environment)
    (tmp_path / "b" / "study.json").unlink()
    assert _bytes(tmp_path / "a") == _bytes(tmp_path / "b")


@pytest.mark.parametrize("name", STUDIES)
def test_every_figure_is_valid_xml_with_a_title_and_a_description(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    write_views(request.getfixturevalue(name), tmp_path)
    for path in (tmp_path / "figures").glob("*.svg"):
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
        kinds = [child.tag.rpartition("}")[2] for child in root]
        assert kinds[:2] == ["title", "desc"], path.name
        assert root[1].text, path.name
        assert not list(root.iter("{http://www.w3.org/2000/svg}script")), path.name


def test_the_example_draws_every_figure(example: dict[str, Any], tmp_path: Path) -> None:
    write_views(example, tmp_path)
    drawn = {path.stem for path in (tmp_path / "figures").glob("*.svg")}
    assert drawn == {"lifetime", "pareto", "coverage", "waterfall", "ladder", "fleet", "latency", "goodput", "memory"}


def test_a_figure_without_data_does_not_survive_from_an_older_report(
    example: dict[str, Any], bare_study: dict[str, Any], tmp_path: Path
) -> None:
    write_views(example, tmp_path)
    write_views(bare_study, tmp_path)
    assert not list((tmp_path / "figures").glob("*.svg"))
    assert "figures/" not in (tmp_path / "report.md").read_text(encoding="utf-8")


def test_metrics_and_series_are_finite_and_name_their_mode(example: dict[str, Any], tmp_path: Path) -> None:
    write_views(example, tmp_path)
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert all(math.isfinite(value) for values in metrics.values() for value in values.values())
    for path in (tmp_path / "series").glob("*.json"):
        rows = json.loads(path.read_text())
        assert rows
        assert all(row["mode"] for row in rows)


@pytest.mark.parametrize("text", ['{"schema_version": 2}', "[]", '{"schema_version": 1}'])
def test_a_study_of_another_shape_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "study.json").write_text(text)
    with pytest.raises(UserError, match="must"):
        load(tmp_path / "study.json")
