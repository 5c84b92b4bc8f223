"""compare: the command line, its exit status, and Markdown that no name can break."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path

from stages.compare import markdown
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
    assert "| worse | compile | num_graph_breaks | 0 | 3 |" in found.stdout
    assert found.stdout.index("Paths") < found.stdout.index("Start-up") < found.stdout.index("Steady state") < found.stdout.index("Answers")


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


def test_names_cannot_break_the_table() -> None:
    before = example(("eager",)) | {"name": "<script>|x"}
    text = markdown(before, before | {"environment": {**before["environment"], "gpu": "a|b\nc"}}, [])
    assert "<script>" not in text
    assert r"a\|b c |" in text
