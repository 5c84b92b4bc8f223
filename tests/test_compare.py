"""compare: the command line, its exit status, and Markdown that no name can break."""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

from stages.analysis.comparison import compare
from stages.compare import write
from stages.views.comparing import Comparison, as_html, as_junit, as_markdown
from tests.tracking.study_folder import example, write_json

PACKAGE_ROOT = Path(__file__).resolve().parents[1]


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stages.compare", *arguments]
    return subprocess.run(
        command, cwd=PACKAGE_ROOT, env=os.environ | {"OPMODE_ROOT": str(root)}, capture_output=True, text=True, check=False
    )


def test_exit_status_says_whether_something_became_worse(tmp_path: Path) -> None:
    before = example(("eager", "compile"))
    worse = copy.deepcopy(before)
    worse["modes"]["compile"]["evidence"]["num_graph_breaks"] += 3
    write_json(tmp_path / "reports" / "studies" / "before" / "study.json", before)
    write_json(tmp_path / "reports" / "latest" / "study.json", worse)
    assert run(tmp_path, "before", "before").returncode == 0
    found = run(tmp_path, "before", "latest")
    assert (found.returncode, found.stderr) == (1, "")
    assert found.stdout.startswith(f"# {before['name']} in before (A) against {before['name']} in latest (B)".replace("_", "\\_"))
    assert "| worse | compile | num_graph_breaks | 0 | 3 |" in found.stdout
    titles = ["**New fallbacks since A: none**", "## Paths", "## Answers", "## Start-up", "## Compile caches", "## Steady state", "## Load"]
    places = [found.stdout.index(title) for title in titles]
    assert places == sorted(places)


def test_studies_of_different_work_and_unknown_names_end_with_two_and_no_traceback(tmp_path: Path) -> None:
    before = example(("eager",))
    other = copy.deepcopy(before)
    other["model"]["name"] = "other"
    write_json(tmp_path / "a.json", before)
    write_json(tmp_path / "b.json", other)
    refused = run(tmp_path, str(tmp_path / "a.json"), str(tmp_path / "b.json"))
    assert refused.returncode == 2
    assert refused.stderr.startswith("error: model.name: must be the same in both studies")
    unknown = run(tmp_path, "nobody", "latest")
    assert (unknown.returncode, unknown.stderr.count("\n")) == (2, 1)


def hostile() -> Comparison:
    before = example(("eager", "compile")) | {"name": "<script>|x\x00"}
    after = copy.deepcopy(before)
    after["environment"]["gpu"] = "a|b\nc"
    after["modes"]["compile"] |= {"status": "failed", "reason": "<img src=x>|\x1b[31m & ]]>"}
    return Comparison(before, after, compare(before, after))


def test_names_cannot_break_the_markdown() -> None:
    text = as_markdown(hostile())
    assert "<script>" not in text
    assert "<img" not in text
    assert r"a\|b c |" in text


def test_html_asks_for_nothing_and_escapes_everything() -> None:
    text = as_html(hostile())
    assert "<script" not in text
    assert "<img" not in text
    assert "&lt;img src=x&gt;" in text
    assert "New fallbacks since A: 1" in text
    assert not re.findall(r"(?:src|href)=\"(?!data:|#)", text)
    assert "\x1b" not in text


def test_junit_is_well_formed_and_counts_what_is_worse() -> None:
    root = ElementTree.fromstring(as_junit(hostile()))
    failures = root.findall(".//failure")
    assert root.get("failures") == str(len(failures)) == "1"
    case = root.find("testsuite[@name='Fallbacks']/testcase")
    assert case is not None
    assert (case.get("classname"), case.get("name")) == ("compile", "status")
    assert len(root.findall(".//testcase")) == int(root.get("tests") or 0)


def test_all_three_files_are_written(tmp_path: Path) -> None:
    write(hostile(), tmp_path / "new")
    assert sorted(file.name for file in (tmp_path / "new").iterdir()) == ["comparison.html", "comparison.md", "junit.xml"]


def test_repeat_of_a_study_is_told_with_both_tables_and_kept(tmp_path: Path) -> None:
    before = example(("eager", "cuda_graph"))
    moved = copy.deepcopy(before)
    for times in moved["modes"]["cuda_graph"]["steady_state"]["decode"].values():
        times["wall_us"]["median"] *= 1.05
    again = copy.deepcopy(before)
    for document in (again, moved):
        for answer in document["attribution"].values():
            for cells in (part["set_us"] for part in answer.values() if isinstance(part, dict) and "set_us" in part):
                cells |= {cell: [1.0001 * us for us in means] for cell, means in cells.items()}
    for name, study in (("a", before), ("again", again), ("moved", moved)):
        write_json(tmp_path / "reports" / "studies" / name / "study.json", study)
    once = run(tmp_path, "a", "a", "--repeat")
    assert (once.returncode, once.stderr.startswith("error: B: must be A measured again")) == (2, True)
    same = run(tmp_path, "a", "again", "--repeat", "--output", str(tmp_path / "out"))
    assert same.returncode == 0, same.stdout + same.stderr
    assert "(100.0%, wanted 95%)" in same.stdout
    assert (tmp_path / "out" / "repeat.md").read_text(encoding="utf-8").startswith("# ")
    assert run(tmp_path, "a", "moved", "--repeat").returncode == 1
