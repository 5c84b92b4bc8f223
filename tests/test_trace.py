from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from stages.core.paths import root
from stages.core.records.plan import Plan, Request


@pytest.fixture
def study(tmp_path: Path) -> Path:
    config: dict[str, Any] = {
        "trace": OmegaConf.load(root() / "conf/trace/smoke.yaml"),
        "model": OmegaConf.load(root() / "conf/model/tiny.yaml"),
        "measure": {"plan": {}},
    }
    (tmp_path / "config").mkdir()
    (tmp_path / "config/eager.yaml").write_text(OmegaConf.to_yaml(OmegaConf.create(config)), encoding="utf-8")
    return tmp_path


def run(command: str, study: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OPMODE_STUDY": str(study), "COLUMNS": "120"}
    line = [sys.executable, "-m", f"stages.{command}", *arguments]
    return subprocess.run(line, cwd=root(), env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_stage_writes_a_plan_and_its_requests_the_same_every_time(study: Path) -> None:
    assert run("trace", study).returncode == 0
    first = [(study / "trace" / name).read_bytes() for name in ("plan.json", "requests.json")]
    plan = Plan.model_validate_json(first[0])
    requests = [Request.model_validate(line) for line in json.loads(first[1])]
    assert plan.num_requests == len(requests) == 6
    assert plan.num_steps == sum(run.count for run in plan.runs)
    assert run("trace", study).returncode == 0
    assert [(study / "trace" / name).read_bytes() for name in ("plan.json", "requests.json")] == first


def test_stage_imports_no_torch() -> None:
    code = "import sys, stages.trace, stages.inspect_trace; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=root(), check=False).returncode == 0


@pytest.mark.parametrize("command", ["trace", "inspect_trace"])
def test_a_study_without_configuration_ends_with_one_line_and_status_2(command: str, tmp_path: Path) -> None:
    result = run(command, tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "eager.yaml: must be an existing file" in result.stderr


def test_inspect_trace_prints_what_is_planned(study: Path) -> None:
    result = run("inspect_trace", study, "--config", str(study / "config/eager.yaml"))
    assert result.returncode == 0, result.stderr
    for part in ("trace smoke", "6 over", "planned decode batches", "1, 2", "steps decode/2", "steps prefill/32", "prefill padding waste"):
        assert part in result.stdout
    assert not (study / "trace").exists()
