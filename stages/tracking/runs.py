"""A study folder as MLflow runs: one parent, one child a mode. No MLflow here, and no clock: times come from the records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stages.core import digest
from stages.core.records.base import read_json
from stages.core.stage_names import MODE_STAGES
from stages.core.typed_yaml import load_yaml
from stages.tracking import metrics
from stages.tracking.content import MAX_TAG_CHARACTERS, Artifact, RunContent, flat, milliseconds, shortened
from stages.views import document
from stages.views.choices import is_record_of

CONTENT_VERSION = 1  # raise it when names or formats of params change: MLflow refuses another value
_RUN_STATUS = {"ok": "FINISHED", "unavailable": "FINISHED", "failed": "FAILED", "skipped": "KILLED"}


@dataclass(frozen=True)
class PublishedStudy:
    """A study as runs: its parent and a child for each mode, by name."""

    parent: RunContent
    modes: Mapping[str, RunContent]


def of_folder(folder: Path) -> PublishedStudy:
    """The runs of the study in `folder` (reports/latest, a kept study, a sweep's cell).

    Raises UserError when study.json is missing or broken.
    """
    study = document.load(folder / "study.json")
    configs = {mode: _configuration(folder, mode) for mode in study["modes"]}
    key = digest.of_document([CONTENT_VERSION, study, configs])
    modes = {mode: _of_mode(folder, study, mode, key, configs[mode]) for mode in study["modes"]}
    return PublishedStudy(_of_study(folder, study, key), modes)


def hashes(published: PublishedStudy) -> dict[str, Any]:
    """What mlflow.json holds: content hashes alone, so that publishing elsewhere or again changes no file."""
    return {"study": published.parent.key, "modes": {mode: run.key for mode, run in published.modes.items()}}


def identity(study: document.Study, mode: str) -> dict[str, str]:
    """Params that every run has, so that the compare page can use any of them as an axis."""
    environment, model = document.part(study, "environment"), document.part(study, "model")
    shapes = {"decode": document.decode_batches(study), "prefill": document.prompt_sizes(study)}
    found = {
        "model": model.get("name"),
        "mode": mode,
        "torch": environment.get("torch"),
        "device": environment.get("device"),
        "gpu": environment.get("gpu") or environment.get("cpu"),
        "driver": environment.get("driver") or "none",
        "precision": model.get("precision"),
        "trace": document.dig(study, "trace", "name"),
        "shapes": json.dumps(document.dig(study, "trace", "shapes") or shapes, sort_keys=True),
    }
    return {name: str(value) for name, value in found.items()}


def _of_study(folder: Path, study: document.Study, key: str) -> RunContent:
    start_ms, end_ms = _span(study, _record_files(folder, study))
    sentence = str(document.dig(study, "verdict", "sentence") or "")
    return RunContent(
        key=key,
        name=str(study.get("name", folder.name)),
        status="FINISHED",
        start_ms=start_ms,
        end_ms=end_ms,
        params=identity(study, ", ".join(document.mode_names(study))),
        tags={"kind": "study", "study": str(study.get("name", "")), "verdict": sentence, "mlflow.note.content": _note(folder)},
        metrics=metrics.of_study(study),
        artifacts=_study_files(folder, study),
    )


def _of_mode(folder: Path, study: document.Study, mode: str, key: str, configuration: Mapping[str, Any]) -> RunContent:
    node = document.part(study, "modes", mode)
    files = [path for stage in MODE_STAGES if (path := folder / stage / f"{mode}.json").is_file()]
    start_ms, end_ms = _span(study, files)
    config_file = folder / "config" / f"{mode}.yaml"
    status = str(node.get("status", "skipped"))
    return RunContent(
        key=digest.of_document([key, mode]),
        name=mode,
        status=_RUN_STATUS.get(status, "FAILED"),
        start_ms=start_ms,
        end_ms=end_ms,
        params={**_parameters(configuration), **identity(study, mode)},
        tags=_mode_tags(study, mode, status),
        metrics=metrics.of_mode(study, mode),
        series=metrics.series_of_mode(study, mode),
        artifacts=(
            *(Artifact(path, f"records/{path.parent.name}") for path in files),
            *([Artifact(config_file, "config")] if config_file.is_file() else []),
        ),
    )


def _mode_tags(study: document.Study, mode: str, status: str) -> dict[str, str]:
    node = document.part(study, "modes", mode)
    found = {
        "kind": "mode",
        "study": study.get("name"),
        "status": status,
        "reason": document.why_not(study, mode),
        "evidence": document.dig(node, "evidence", "verdict"),
        "correctness": document.dig(node, "correctness", "verdict"),
        "baseline": str(mode == document.baseline(study)).lower(),
    }
    return {name: shortened(str(value), MAX_TAG_CHARACTERS) for name, value in found.items() if value}


def _configuration(folder: Path, mode: str) -> dict[str, Any]:
    path = folder / "config" / f"{mode}.yaml"
    found = load_yaml(path) if path.is_file() else {}
    return {key: value for key, value in found.items() if key != "code"} if isinstance(found, dict) else {}


def _parameters(configuration: Mapping[str, Any]) -> dict[str, str]:
    return {name: value for key, node in configuration.items() for name, value in flat(node, str(key)).items()}


def _span(study: document.Study, files: Iterable[Path]) -> tuple[int, int]:
    """Start and end in ms: the end is the last record's, the duration the sum of what the records took.

    Old records that a partial run kept would else make a run of days.
    """
    times = [(record.get("started_at"), record.get("ended_at")) for record in map(read_json, files)]
    spans = [(milliseconds(start), milliseconds(end)) for start, end in times if start and end]
    if not spans:
        created = study.get("created_at")
        moment = milliseconds(str(created)) if created else 0
        return moment, moment
    end_ms = max(end for _, end in spans)
    return end_ms - sum(end - start for start, end in spans), end_ms


def _record_files(folder: Path, study: document.Study) -> list[Path]:
    of_modes = [folder / stage / f"{mode}.json" for stage in MODE_STAGES for mode in study["modes"]]
    return [path for path in [*of_modes, *_steady_state(folder, study)] if path.is_file()]


def _steady_state(folder: Path, study: document.Study) -> list[Path]:
    return [path for path in sorted((folder / "steady_state").glob("*.json")) if is_record_of(study, "steady_state", path.stem)]


def _study_files(folder: Path, study: document.Study) -> tuple[Artifact, ...]:
    places = {
        "": ["study.json"],
        "report": ["report.md", "report.html", "metrics.json"],
        "report/figures": ["figures/*.svg"],
        "records": ["environment.json", "attribution.json"],
        "records/trace": ["trace/plan.json", "trace/requests.json"],
        "config/factorial": ["config/factorial/*.yaml"],
    }
    found = [Artifact(path, place) for place, globs in places.items() for glob in globs for path in sorted(folder.glob(glob))]
    return tuple(found + [Artifact(path, "records/steady_state") for path in _steady_state(folder, study)])


def _note(folder: Path) -> str:
    path = folder / "report.md"
    if not path.is_file():
        return ""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("![")]  # images do not resolve there
    return shortened("\n".join(lines), MAX_TAG_CHARACTERS)
