"""What a study was made with: whether params.yaml still says so, and which records are its own."""

from __future__ import annotations

from typing import Any

from stages.core.errors import UserError
from stages.core.settings import Params
from stages.views import document

CHOSEN = ("measure", "device", "device_memory_bytes", "arrival_rates", "lifetimes_s", "factorials", "overrides")


def is_record_of(study: document.Study, stage: str, item: str) -> bool:
    """Whether a record is the study's; those of a mode or factorial that params.yaml no longer names stay where they are."""
    return item in (document.part(study, "choices").get("factorials", [item]) if stage == "steady_state" else study["modes"])


def check_same_choices(study: document.Study, params: Params, modes: bool = True) -> None:
    """Raise UserError for a study of other choices. `modes` False: other modes are the caller's business."""
    chosen, model, trace = (document.part(study, name) for name in ("choices", "model", "trace"))
    asked: dict[str, Any] = {"name": params.name, "model": params.model, "trace": params.trace, "precision": params.precision}
    measured = {"name": study.get("name"), "model": model.get("name"), "trace": trace.get("name"), "precision": model.get("precision")}
    asked["slo"], measured["slo"] = vars(params.slo), chosen.get("slo")
    if modes:
        asked["modes"], measured["modes"] = sorted(params.modes), sorted(study["modes"])
    for key in CHOSEN:
        asked[key], measured[key] = getattr(params, key), chosen.get(key)
    for key in asked:
        if asked[key] != measured[key]:
            rule = f"must be what the study was made with ({measured[key]})"
            raise UserError(f"params.yaml: {key}", rule, asked[key], "Run dvc repro first.")
