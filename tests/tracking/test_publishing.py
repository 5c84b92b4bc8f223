"""Publishing into a real MLflow store (SQLite): once, twice, after a kill, and where the store refuses."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stages.core.errors import UserError
from stages.sweeps.results import CellResult
from stages.tracking.locking import publishing_lock
from stages.tracking.publishing import publish_study, publish_sweep
from tests.tracking.study_folder import MODES, example, write_json, write_study, write_text

pytestmark = pytest.mark.filterwarnings("ignore:The ``noload`` loader strategy:DeprecationWarning")

KILLED_IN_THE_SECOND_ARTIFACT = """
import os, sys
from pathlib import Path
from mlflow.tracking import MlflowClient
from stages.tracking.publishing import publish_study
log_artifact, seen = MlflowClient.log_artifact, []
def killing(self, run_id, path, folder=None):
    seen.append(path)
    if len(seen) == 7:
        os._exit(9)
    log_artifact(self, run_id, path, folder)
MlflowClient.log_artifact = killing
publish_study(Path(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with MLflow's tables: making them takes seconds."""
    folder = tmp_path_factory.mktemp("empty")
    client(folder)
    return folder / "mlflow.db"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_database: Path) -> Path:
    monkeypatch.setenv("OPMODE_ROOT", str(tmp_path))
    shutil.copy(empty_database, tmp_path / "mlflow.db")
    return tmp_path


def client(root: Path) -> Any:
    from mlflow.tracking import MlflowClient

    return MlflowClient(tracking_uri=f"sqlite:///{root / 'mlflow.db'}")


def all_runs(root: Path) -> list[Any]:
    reader = client(root)
    return list(reader.search_runs([reader.get_experiment_by_name("opmode").experiment_id], max_results=1000))


def contents(root: Path) -> dict[str, Any]:
    """Everything that a second publish could change: runs, points of every metric, files."""
    reader = client(root)
    found: dict[str, Any] = {}
    for run in all_runs(root):
        points = {name: len(reader.get_metric_history(run.info.run_id, name)) for name in run.data.metrics}
        found[run.info.run_id] = (run.info.status, run.info.start_time, run.info.end_time, run.data.params, run.data.tags, points)
    files = {str(path): path.stat().st_mtime_ns for path in (root / "mlartifacts").rglob("*") if path.is_file()}
    return found | files


def test_study_is_one_parent_and_a_child_a_mode(root: Path) -> None:
    assert publish_study(write_study(root / "study")).endswith("5 new or changed")
    runs = {run.info.run_name: run for run in all_runs(root)}
    parent = next(run for run in runs.values() if run.data.tags["kind"] == "study")
    children = [run for run in runs.values() if run.data.tags["kind"] == "mode"]
    assert sorted(run.data.params["mode"] for run in children) == sorted(MODES)
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {parent.info.run_id}
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    assert {run.data.tags["opmode.complete"] for run in runs.values()} == {"1"}
    assert parent.info.end_time - parent.info.start_time == (4 * 105 + 60) * 1000
    assert (root / "mlartifacts" / parent.info.run_id / "artifacts" / "report" / "figures" / "lifetime.svg").read_text() == "<svg/>"
    assert len(client(root).get_metric_history(runs["compile"].info.run_id, "lifetime/2_cold_completions")) > 10


def test_publishing_twice_changes_nothing(root: Path) -> None:
    folder = write_study(root / "study", example(("eager", "compile")))
    publish_study(folder)
    before, hashes = contents(root), (folder / "mlflow.json").read_bytes()
    assert publish_study(folder).endswith("nothing new")
    assert contents(root) == before
    assert (folder / "mlflow.json").read_bytes() == hashes
    assert not [run_id for run_id in before if run_id in hashes.decode()]


def test_another_report_of_the_same_study_replaces_the_file_in_its_run(root: Path) -> None:
    folder = write_study(root / "study", example(("eager",)))
    publish_study(folder)
    write_text(folder / "report.html", "another layout")
    assert publish_study(folder).endswith("1 new or changed")
    assert len(all_runs(root)) == 2
    (report,) = (root / "mlartifacts").rglob("report.html")
    assert report.read_text() == "another layout"


def test_publish_killed_half_way_is_completed_without_duplicates(root: Path) -> None:
    (root / "mlflow.db").unlink()
    folder = write_study(root / "study", example(("eager", "compile")))
    killed = subprocess.run(
        [sys.executable, "-c", KILLED_IN_THE_SECOND_ARTIFACT, str(folder)], cwd=Path(__file__).resolve().parents[2], check=False
    )
    assert killed.returncode == 9
    assert "RUNNING" in {run.info.status for run in all_runs(root)}
    publish_study(folder)
    runs = all_runs(root)
    assert Counter(run.data.tags["kind"] for run in runs) == {"study": 1, "mode": 2}
    assert {run.info.status for run in runs} == {"FINISHED"}
    after = contents(root)
    assert publish_study(folder).endswith("nothing new")
    assert contents(root) == after


def test_run_that_someone_deleted_is_published_again(root: Path) -> None:
    folder = write_study(root / "study", example(("eager", "compile")))
    publish_study(folder)
    client(root).delete_run(next(run.info.run_id for run in all_runs(root) if run.info.run_name == "compile"))
    assert publish_study(folder).endswith("1 new or changed")
    assert Counter(run.data.tags["kind"] for run in all_runs(root)) == {"study": 1, "mode": 2}


def test_sweep_is_one_parent_and_a_child_a_cell_with_failed_ones_shown(root: Path) -> None:
    sweep = root / "build" / "sweeps" / "2026-11-29_10-00-00"
    for number, (mode, status) in enumerate([("eager", "ok"), ("compile", "ok"), ("dynamo", "failed")]):
        cell = sweep / f"cell_{number}"
        ending = {"stage": "trace", "exit_status": 2} if status == "failed" else {"stage": "", "exit_status": 0}
        times = {"started_at": "2026-11-29T10:00:00", "ended_at": "2026-11-29T10:01:00", "seconds": {}}
        told = {"cell": cell.name, "mode": mode, "choices": {"mode": mode, "precision": "fp32"}, "log_tail": ["error: no such trace"]}
        result = CellResult.model_validate({"status": status, **told, **ending, **times})
        write_json(cell / "cell.json", result.model_dump())
        if status == "ok":
            write_study(cell / "study", example(tuple(dict.fromkeys(["eager", mode]))))
    publish_sweep(sweep)
    assert publish_sweep(sweep).endswith("nothing new")
    runs = all_runs(root)
    assert Counter(run.data.tags["kind"] for run in runs) == {"sweep": 1, "cell": 3}
    by_name = {run.info.run_name: run for run in runs}
    assert by_name["mode=dynamo"].info.status == "FAILED"
    assert "no such trace" in by_name["mode=dynamo"].data.tags["reason"]
    assert by_name["mode=compile"].data.metrics["steady_state/sequence_speedup"] > 1
    parent = next(run for run in runs if run.data.tags["kind"] == "sweep")
    assert parent.data.params["mode"] == "eager, compile, dynamo"
    assert {run.data.tags.get("mlflow.parentRunId") for run in runs} == {None, parent.info.run_id}


def test_dead_server_is_a_user_error_within_seconds(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR", "0")
    start = time.monotonic()
    with pytest.raises(UserError, match="must be a tracking store that answers"):
        publish_study(write_study(root / "study", example(("eager",))))
    assert time.monotonic() - start < 15
    assert not (root / "study" / "mlflow.json").exists()


@pytest.mark.parametrize("uri", ["sqlite:////proc/nowhere/mlflow.db", "./mlruns", "nonsense://here"])
def test_store_that_cannot_be_used_is_a_user_error(root: Path, monkeypatch: pytest.MonkeyPatch, uri: str) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    with pytest.raises(UserError, match="MLFLOW_TRACKING_URI"):
        publish_study(write_study(root / "study", example(("eager",))))


def test_broken_database_is_a_user_error(root: Path) -> None:
    write_text(root / "mlflow.db", "this is no database" * 100)
    with pytest.raises(UserError, match="not a database"):
        publish_study(write_study(root / "study", example(("eager",))))


def test_database_moved_from_its_artifacts_is_a_user_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_study(root / "study", example(("eager",)))
    publish_study(folder)
    other = root / "copy"
    other.mkdir()
    (other / "mlflow.db").write_bytes((root / "mlflow.db").read_bytes())
    monkeypatch.setenv("OPMODE_ROOT", str(other))
    with pytest.raises(UserError, match="must not be moved away from its artifacts"):
        publish_study(folder)


def test_second_publisher_waits_and_then_gives_up(root: Path) -> None:
    with publishing_lock(), pytest.raises(UserError, match="held by another publish"), publishing_lock(wait_s=0.3):
        pass
    assert os.path.exists(root / "build" / "publish.lock")


def test_folder_in_place_of_the_database_is_one_line_and_no_wait(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{root}")
    with pytest.raises(UserError, match=r"MLFLOW_TRACKING_URI: must name a file, not a folder; got sqlite:///.* Add the file's name"):
        publish_study(write_study(root / "reports" / "latest"))


def test_text_that_is_no_address_is_one_line(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://[")
    with pytest.raises(UserError, match=r"MLFLOW_TRACKING_URI: must be an address \(Invalid IPv6 URL\); got http://\["):
        publish_study(write_study(root / "reports" / "latest"))
