"""The plan of a composed configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from stages.core.build import build
from stages.core.errors import UserError
from stages.core.records.plan import Plan, Request
from stages.traces.checks import require
from stages.traces.planning import PlanSettings, plan


def plan_of(path: Path) -> tuple[Plan, list[Request]]:
    """Plan the trace, model and `measure.plan` of a composed file. Raises UserError for what is missing or wrong in it."""
    config = _read(path)
    trace = build(_section(config, path, "trace"), "trace")
    model = build(_section(config, path, "model"), "model")
    measure = _section(config, path, "measure")
    target = f"{PlanSettings.__module__}.{PlanSettings.__qualname__}"
    settings = build({**_section(measure, path, "plan"), "_target_": target}, "measure.plan")
    return plan(trace, model, settings)


def _read(path: Path) -> dict[str, Any]:
    require(path.is_file(), str(path), "must be an existing file", "none", "Run dvc repro, or python -m stages.compose.")
    try:
        config = OmegaConf.to_container(OmegaConf.load(path), resolve=True)
    except (OSError, OmegaConfBaseException, YAMLError, UnicodeDecodeError) as error:  # OSError: a lone number
        raise UserError(str(path), "must be a composed configuration", str(error).split("\n")[0], "Compose it again.") from error
    if not isinstance(config, dict):
        raise UserError(str(path), "must be a composed configuration", type(config).__name__, "Compose it again.")
    return {str(key): value for key, value in config.items()}


def _section(config: dict[str, Any], path: Path, key: str) -> dict[str, Any]:
    section = config.get(key)
    if not isinstance(section, dict):
        raise UserError(f"{path}: {key}", "must be a mapping", section, "Compose it again.")
    return section
