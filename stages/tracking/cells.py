"""A sweep's folder as MLflow runs: one parent, one child a cell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from stages.core import digest
from stages.sweeps.results import CELL_FILE, LOG_FILE, STUDY_FOLDER, CellResult, described, read_cells, varying
from stages.tracking import runs
from stages.tracking.content import MAX_TAG_CHARACTERS, Artifact, RunContent, milliseconds, part, shortened


@dataclass(frozen=True)
class PublishedSweep:
    """A sweep as runs."""

    parent: RunContent
    children: list[RunContent]


def of_sweep(folder: Path) -> PublishedSweep:
    """The runs of a finished sweep. Raises UserError when the folder holds no cells."""
    cells = read_cells(folder)
    keys = varying(cells)
    children = [_of_cell(folder / cell.cell, cell, described(cell, keys)) for cell in cells]
    values = {key: ", ".join(dict.fromkeys(cell.choices.get(key, "") for cell in cells)) for key in cells[0].choices}
    num_failed = sum(cell.status == "failed" for cell in cells)
    parent = RunContent(
        key=digest.of_document(["sweep", folder.name, [child.key for child in children]]),
        name=f"sweep {folder.name}",
        status="FAILED" if num_failed == len(cells) else "FINISHED",
        start_ms=min(child.start_ms for child in children),
        end_ms=max(child.end_ms for child in children),
        params={**_shared(children), **_swept(values)},
        tags={"kind": "sweep", "sweep": folder.name, "swept": ", ".join(keys)},
        metrics={"sweep/num_cells": float(len(cells)), "sweep/num_failed": float(num_failed)},
    )
    return PublishedSweep(parent, children)


def _of_cell(folder: Path, cell: CellResult, name: str) -> RunContent:
    start_ms, end_ms = milliseconds(cell.started_at), milliseconds(cell.ended_at)
    tags = {"kind": "cell", "sweep": folder.parent.name, "cell": cell.cell}
    files = tuple(Artifact(path, "") for path in (folder / CELL_FILE, folder / "params.yaml", folder / LOG_FILE) if path.is_file())
    key = digest.of_document(["cell", folder.parent.name, cell.model_dump(mode="json")])
    if cell.status == "failed":
        reason = f"{cell.stage}: exit status {cell.exit_status}: {' | '.join(cell.log_tail)}"
        tags |= {"status": "failed", "reason": shortened(reason, MAX_TAG_CHARACTERS)}
        return RunContent(
            key=key, name=name, status="FAILED", start_ms=start_ms, end_ms=end_ms, params=_swept(cell.choices), tags=tags, artifacts=files
        )
    study = runs.of_folder(folder / STUDY_FOLDER)
    run = study.modes[cell.mode] if cell.mode else study.parent
    return replace(
        run,
        key=key,
        name=name,
        start_ms=start_ms,
        end_ms=end_ms,
        params={**_swept(cell.choices), **run.params},
        tags={**run.tags, **tags},
        artifacts=(*files, *study.parent.artifacts, *(run.artifacts if cell.mode else ())),
    )


def _swept(choices: Mapping[str, str]) -> dict[str, str]:
    return {part(key): value for key, value in choices.items()}


def _shared(children: list[RunContent]) -> dict[str, str]:
    """Params that every cell with a study agrees on."""
    studies = [child.params for child in children if "torch" in child.params]
    first = studies[0] if studies else {}
    return {name: value for name, value in first.items() if all(params.get(name) == value for params in studies)}
