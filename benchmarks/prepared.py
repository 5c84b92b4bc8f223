"""What the benchmarks build their services from: nodes of conf/, and a plan of the model's own shapes."""

from __future__ import annotations

from typing import Any

import yaml

from stages.core import paths
from stages.core.errors import UserError
from stages.core.protocols import Model
from stages.core.records.plan import Plan


def conf_node(group: str, name: str) -> dict[str, Any]:
    """conf/<group>/<name>.yaml, as it is written. Raises UserError where there is none of that name."""
    known = {file.stem: file for file in sorted((paths.root() / "conf" / group).glob("*.yaml"))}
    if name not in known:
        raise UserError(f"--{group}", f"must be one of {', '.join(known)}", name, f"See conf/{group}/.")
    return dict(yaml.safe_load(known[name].read_text(encoding="utf-8")))


def traceless_plan(model: Model) -> Plan:
    """The model's own shapes and no trace."""
    sizes = {key: getattr(model, key) for key in ("context_tokens", "max_batch", "capture_sizes", "prompt_sizes")}
    nothing: dict[str, Any] = {"num_requests": 0, "num_steps": 0, "num_decode_steps": 0, "runs": [], "statistics": {}, "scheduler": {}}
    return Plan(trace="none", span_s=1, recorded_rate_per_s=1, length_factor=1, **nothing, **sizes)
