"""Publish a folder, whatever it holds: a study, or a finished sweep."""

from __future__ import annotations

from pathlib import Path

from stages.core import atomic
from stages.tracking import cells, runs, store


def publish_study(folder: Path) -> str:
    """Publish the study in `folder` and write its mlflow.json; returns what was done, in words. Raises UserError."""
    study = runs.of_folder(folder)
    num_changed = store.publish(study.parent, list(study.modes.values()))
    atomic.write_json(folder / "mlflow.json", runs.hashes(study))
    return _said(f"study {study.parent.name}", 1 + len(study.modes), num_changed)


def publish_sweep(folder: Path) -> str:
    """Publish a finished sweep: one parent, one child a cell; returns what was done, in words. Raises UserError."""
    sweep = cells.of_sweep(folder)
    num_changed = store.publish(sweep.parent, sweep.children)
    return _said(sweep.parent.name, 1 + len(sweep.children), num_changed)


def _said(subject: str, num_runs: int, num_changed: int) -> str:
    change = f"{num_changed} new or changed" if num_changed else "nothing new"
    return f"{subject}: {num_runs} runs in {store.tracking_uri()}, {change}"
