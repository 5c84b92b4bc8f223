"""The saved view of MLflow's runs table that ranks modes: flat, sorted, with the columns that decide.

MLflow shows no metric columns by itself. Its UI reads a view from an experiment's tag `mlflow.sharedViewState.<key>` at
`/#/experiments/<id>/runs?viewStateShareKey=<key>` (what its own Share button writes); other servers ignore the tag.
"""

from __future__ import annotations

import json

KEY = "opmode"
TAG = f"mlflow.sharedViewState.{KEY}"
SORTED_BY = "steady_state/sequence_s"
METRICS = (SORTED_BY, "steady_state/sequence_speedup", "warmup/cold_ready_s", "warmup/warm_ready_s", "load/request_goodput")
PARAMS = ("model", "gpu", "torch")
TAGS = ("evidence", "correctness")


def state() -> str:
    """The view as the UI reads it: runs of the kind `mode`, fastest first."""
    return json.dumps(
        {
            "searchFilter": "tags.kind = 'mode'",
            "orderByKey": _columns("metrics", METRICS)[0],
            "orderByAsc": True,
            "startTime": "ALL",
            "lifecycleFilter": "Active",
            "datasetsFilter": [],
            "modelVersionFilter": "All Runs",
            "selectedColumns": [*_columns("metrics", METRICS), *_columns("params", PARAMS), *_columns("tags", TAGS)],
        }
    )


def _columns(kind: str, names: tuple[str, ...]) -> list[str]:
    return [f"{kind}.`{name}`" for name in names]
