"""The tracking store: each run content is published once, found again by its content hash.

A run counts only with the tag `opmode.complete`, set last: what a killed publish left is filled on the next call.
Metrics carry their run's own end time, because MLflow stores an exact repeat of a point once.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from stages.core import paths
from stages.core.errors import UserError
from stages.tracking import ranking_view
from stages.tracking.content import RunContent, files_digest
from stages.tracking.locking import publishing_lock

if TYPE_CHECKING:
    from mlflow.entities import Run
    from mlflow.tracking import MlflowClient

EXPERIMENT = "opmode"
KEY_TAG, COMPLETE_TAG, FILES_TAG = "opmode.key", "opmode.complete", "opmode.files"
_CLIENT_SETTINGS = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",  # MLflow's own default waits four minutes
    "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "1",
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "20",
}
_NUM_METRICS_A_CALL, _NUM_PARAMS_A_CALL = 1000, 100
Item = TypeVar("Item")


def tracking_uri() -> str:
    """$MLFLOW_TRACKING_URI, or the SQLite file at the project's root."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{paths.root() / 'mlflow.db'}"


def publish(parent: RunContent, children: Sequence[RunContent]) -> int:
    """Publish a parent run and its children; returns how many runs were new or changed.

    Raises UserError when the store does not answer or refuses; nothing published so far is lost or doubled by a repeat.
    """
    with publishing_lock(), _store() as store:
        parent_id, changed = store.open(parent, None)
        num_changed = 0
        for child in children:
            child_id, child_changed = store.open(child, parent_id)
            if child_changed:
                store.fill(child_id, child)
            num_changed += child_changed
        if changed:
            store.fill(parent_id, parent)
        return num_changed + changed


@dataclass(frozen=True)
class _Store:
    client: MlflowClient
    experiment_id: str

    def open(self, content: RunContent, parent_id: str | None) -> tuple[str, bool]:
        """The run's id, found or created, and whether something of it is still to be written."""
        run = self._find(content.key)
        if run is not None:
            tags = run.data.tags
            return run.info.run_id, tags.get(COMPLETE_TAG) != "1" or tags.get(FILES_TAG) != files_digest(content.artifacts)
        nesting = {"mlflow.parentRunId": parent_id} if parent_id else {}
        tags = {KEY_TAG: content.key, **nesting}
        created = self.client.create_run(self.experiment_id, content.start_ms, tags=tags, run_name=content.name)
        return created.info.run_id, True

    def fill(self, run_id: str, content: RunContent) -> None:
        """Write everything; each call leaves the run as it is when nothing is new."""
        from mlflow.entities import Metric, Param, RunTag

        points = [(name, value, 0) for name, value in content.metrics.items()]
        points += [(name, value, step) for name, line in content.series.items() for step, value in line]
        for params in _chunks(content.params.items(), _NUM_PARAMS_A_CALL):
            self.client.log_batch(run_id, params=[Param(name, value) for name, value in params])
        for chunk in _chunks(points, _NUM_METRICS_A_CALL):
            self.client.log_batch(run_id, metrics=[Metric(name, value, content.end_ms, step) for name, value, step in chunk])
        self.client.log_batch(run_id, tags=[RunTag(name, value) for name, value in content.tags.items()])
        for artifact in content.artifacts:
            self.client.log_artifact(run_id, str(artifact.path), artifact.folder or None)
        self.client.set_terminated(run_id, content.status, content.end_ms)
        self.client.set_tag(run_id, FILES_TAG, files_digest(content.artifacts))
        self.client.set_tag(run_id, COMPLETE_TAG, "1")

    def _find(self, key: str) -> Run | None:
        found = self.client.search_runs([self.experiment_id], f"tags.`{KEY_TAG}` = '{key}'", max_results=1)
        return next(iter(found), None)


@contextmanager
def _store() -> Iterator[_Store]:
    uri = tracking_uri()
    for name, value in _CLIENT_SETTINGS.items():
        os.environ.setdefault(name, value)
    _check_address(uri)
    database = _writable_database(uri)
    from mlflow.exceptions import MlflowException
    from mlflow.tracking import MlflowClient
    from sqlalchemy.exc import SQLAlchemyError

    for chatty in ("mlflow", "alembic"):
        logging.getLogger(chatty).setLevel(logging.ERROR)
    try:
        client = MlflowClient(tracking_uri=uri)
        yield _Store(client, _experiment(client, database))
    except (MlflowException, SQLAlchemyError, ImportError) as error:
        rule = f"must be a tracking store that answers ({' '.join(str(error).split())[:200]})"
        raise UserError("MLFLOW_TRACKING_URI", rule, uri, "The results are on disk: fix it and publish again.") from error


def _check_address(uri: str) -> None:
    try:
        urlsplit(uri)
    except ValueError as error:
        raise UserError("MLFLOW_TRACKING_URI", f"must be an address ({error})", uri, "Fix it and publish again.") from error


def _writable_database(uri: str) -> Path | None:
    if not uri.startswith("sqlite:///"):
        return None
    database = Path(uri.removeprefix("sqlite:///")).resolve()
    if database.is_dir():
        raise UserError("MLFLOW_TRACKING_URI", "must name a file, not a folder", uri, "Add the file's name: sqlite:///folder/mlflow.db.")
    if not os.access(database if database.exists() else database.parent, os.W_OK):
        raise UserError("MLFLOW_TRACKING_URI", "must be in an existing folder that can be written", uri, "Make it, or change it.")
    return database


def _experiment(client: MlflowClient, database: Path | None) -> str:
    found: Any = client.get_experiment_by_name(EXPERIMENT)
    if found is None:
        location = (database.parent / "mlartifacts").as_uri() if database else None
        created = str(client.create_experiment(EXPERIMENT, artifact_location=location))
        client.set_experiment_tag(created, ranking_view.TAG, ranking_view.state())
        return created
    if found.lifecycle_stage != "active":
        remedy = f"Run `mlflow experiments restore --experiment-id {found.experiment_id}`, or remove it with `mlflow gc`."
        raise UserError(f"MLflow experiment {EXPERIMENT}", "must not be deleted", found.lifecycle_stage, remedy)
    if database == paths.root() / "mlflow.db" and found.artifact_location != (database.parent / "mlartifacts").as_uri():
        remedy = "Delete mlflow.db and publish again: every run is made from the files in reports/."
        raise UserError(str(database), "must not be moved away from its artifacts", found.artifact_location, remedy)
    if found.tags.get(ranking_view.TAG) != ranking_view.state():
        client.set_experiment_tag(found.experiment_id, ranking_view.TAG, ranking_view.state())
    return str(found.experiment_id)


def _chunks(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
