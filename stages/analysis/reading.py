"""All records of one study folder as one frozen object: what attribution, report, publish and compare read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from stages.core.cache_proof import judged_again
from stages.core.errors import UserError
from stages.core.records import base
from stages.core.records.answer import AttributionRecord
from stages.core.records.base import Hashes, Record
from stages.core.records.correctness import CorrectnessRecord
from stages.core.records.load import LoadRecord
from stages.core.records.path import CaptureRecord
from stages.core.records.plan import Plan
from stages.core.records.startup import WarmupRecord
from stages.core.records.steps import SteadyStateRecord
from stages.core.settings import BASELINE, Params
from stages.core.typed_yaml import load_yaml

AnyRecord = TypeVar("AnyRecord", bound=Record[Any])


@dataclass(frozen=True, kw_only=True)
class StudyRecords:
    """Everything a study measured. Each mapping has every mode (or factorial) of the study: a missing record is `skipped`."""

    params: Params
    environment: Mapping[str, Any]
    configs: Mapping[str, Mapping[str, Any]]
    factorials: Mapping[str, Mapping[str, str]]
    plan: Plan
    warmup: Mapping[str, WarmupRecord]
    capture: Mapping[str, CaptureRecord]
    load: Mapping[str, LoadRecord]
    correctness: Mapping[str, CorrectnessRecord]
    steady_state: Mapping[str, SteadyStateRecord]

    @property
    def baseline(self) -> str:
        """The mode that the others are compared with."""
        return BASELINE

    @property
    def modes(self) -> list[str]:
        """The study's modes, in the order of params.yaml."""
        return list(self.configs)

    def of_mode(self, mode: str) -> tuple[Record[Any], ...]:
        """The records of one mode, in the order of the pipeline."""
        return self.warmup[mode], self.capture[mode], self.load[mode], self.correctness[mode]

    def all(self) -> Iterator[Record[Any]]:
        """Every record."""
        for mode in self.modes:
            yield from self.of_mode(mode)
        yield from self.steady_state.values()


def read_study(folder: Path, params: Params) -> StudyRecords:
    """Read the records of the modes and factorials that `params` names, and only those.

    Raises UserError when environment.json, trace/plan.json or a composed configuration is missing, or a file is broken.
    """
    factorials = {name: _factorial(folder, name) for name in params.factorials}
    modes = params.modes
    configs = {mode: _composed(folder / "config" / f"{mode}.yaml") for mode in modes}
    return StudyRecords(
        params=params,
        environment=base.read_environment(folder),
        configs=configs,
        factorials=factorials,
        plan=base.read(folder / "trace" / "plan.json", Plan),
        warmup={mode: _starts(folder, mode, configs[mode]) for mode in modes},
        capture={mode: read_or_skipped(folder, "capture", mode, CaptureRecord) for mode in modes},
        load={mode: read_or_skipped(folder, "load", mode, LoadRecord) for mode in modes},
        correctness={mode: read_or_skipped(folder, "correctness", mode, CorrectnessRecord) for mode in modes},
        steady_state={name: read_or_skipped(folder, "steady_state", name, SteadyStateRecord) for name in factorials},
    )


def _starts(folder: Path, mode: str, config: Mapping[str, Any]) -> WarmupRecord:
    record = read_or_skipped(folder, "warmup", mode, WarmupRecord)
    data = record.data and judged_again(record.data, str(config["mode"].get("transform", "")))
    return record.model_copy(update={"data": data})


def read_attribution(folder: Path) -> AttributionRecord:
    """attribution.json. Raises UserError when it is missing or broken."""
    return base.read(folder / "attribution.json", AttributionRecord)


def read_or_skipped(folder: Path, stage: str, item: str, record_type: type[AnyRecord]) -> AnyRecord:
    """A record, or one with status `skipped` when the file is not there. Raises UserError for a broken file."""
    path = folder / stage / f"{item}.json"
    if not path.exists():
        return skipped(stage, item, record_type)
    record = base.read(path, record_type)
    if (record.stage, record.item) != (stage, item):
        raise UserError(str(path), f"must be the record of {stage}@{item}", f"{record.stage}@{record.item}", "Delete it and run dvc repro.")
    return record


def skipped(stage: str, item: str, record_type: type[AnyRecord]) -> AnyRecord:
    """The record of something that was never measured."""
    return record_type(
        stage=stage,
        item=item,
        status="skipped",
        reason=f"no record: stage {stage} did not run for {item}",
        started_at="",
        ended_at="",
        command=f"dvc repro {stage}@{item}",
        hashes=Hashes(config="", environment="", code=""),
    )


def _factorial(folder: Path, name: str) -> dict[str, str]:
    path = folder / "config" / "factorial" / f"{name}.yaml"
    cells = _yaml(path).get("modes")
    if not isinstance(cells, dict) or not all(isinstance(mode, str) for mode in cells.values()):
        raise UserError(f"{path}:modes", "must map cell keys (E, C, R, CR) to modes", cells, "Run python -m stages.compose.")
    return {str(cell): mode for cell, mode in cells.items()}


def _composed(path: Path) -> dict[str, Any]:
    document = _yaml(path)
    for section in ("model", "mode"):
        if not isinstance(document.get(section), dict):
            raise UserError(f"{path}:{section}", "must be a mapping", document.get(section), "Run python -m stages.compose again.")
    return document


def _yaml(path: Path) -> dict[str, Any]:
    document = load_yaml(path)
    if not isinstance(document, dict):
        raise UserError(str(path), "must be a mapping", type(document).__name__, "Run python -m stages.compose again.")
    return {str(key): value for key, value in document.items()}
