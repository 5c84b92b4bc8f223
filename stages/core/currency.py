"""What a record came from, as hashes; and whether it still is what the present configuration, machine and code give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stages.core import digest
from stages.core.composed import Settings, relevant_config, typed_settings
from stages.core.errors import UserError
from stages.core.records.base import Hashes, Record
from stages.core.records.plan import Plan


def mode_hashes(stage: str, settings: Settings, plan: Plan, environment: Mapping[str, Any]) -> Hashes:
    """Hashes of a record of one mode."""
    return _hashes(relevant_config(stage, settings), plan, environment, settings.code.get(stage, ""))


def factorial_hashes(document: Mapping[str, Any], plan: Plan, environment: Mapping[str, Any]) -> Hashes:
    """Hashes of a steady-state record, from a composed factorial (config/factorial/<name>.yaml)."""
    cells = {cell: typed_settings(one, f"cell {cell}") for cell, one in document["cells"].items() if one}
    config = {cell: relevant_config("steady_state", settings) for cell, settings in cells.items()}
    code = digest.of_document({cell: settings.code.get("steady_state", "") for cell, settings in cells.items()})
    chosen = [document["modes"], document["twins"], document.get("finalists", 0)]
    return _hashes([config, *chosen], plan, environment, code)


def check_current(record: Record[Any], expected: Hashes) -> None:
    """Raise UserError for a record that came from another configuration, environment or code. A skipped one has none."""
    if record.status == "skipped":
        return
    different = [key for key in ("config", "environment", "code") if getattr(record.hashes, key) != getattr(expected, key)]
    if different:
        place = f"{record.stage}/{record.item}.json"
        raise UserError(
            place, "must come from the present configuration, environment and code", f"another {', '.join(different)}", "Run dvc repro."
        )


def _hashes(config: Any, plan: Plan, environment: Mapping[str, Any], code: str) -> Hashes:
    return Hashes(
        config=digest.of_document([config, plan.model_dump(mode="json")]),
        environment=digest.of_document(dict(environment)),
        code=code,
    )
