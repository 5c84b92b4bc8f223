"""The environment and its support table, the model, and the trace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stages.views import words
from stages.views.document import Study, dig, part
from stages.views.tables.table import Table


def environment(study: Study) -> Table:
    """Every plain entry of the environment."""
    return _listing("Environment", part(study, "environment"))


def support(study: Study) -> Table:
    """What this environment can do, from its probe."""
    found = part(study, "environment", "support")
    rows = [[name, "yes" if dig(found, name, "supported") else "no", str(dig(found, name, "why") or "")] for name in sorted(found)]
    return Table("What this environment supports", ["feature", "supported", "why"], rows, texts=frozenset({"supported", "why"}))


def model(study: Study) -> Table:
    """Every plain entry of the model."""
    return _listing("Model", part(study, "model"))


def trace(study: Study) -> Table:
    """Every plain entry of the trace."""
    return _listing("Trace", part(study, "trace"))


def _listing(title: str, node: Mapping[str, Any]) -> Table:
    rows = [[key.replace("_", " "), _shown(key, node[key])] for key in sorted(node) if _worth(key, node[key])]
    return Table(title, ["what", "value"], rows, texts=frozenset({"value"}))


def _worth(key: str, value: Any) -> bool:
    return key != "support" and value is not None and bool(_shown(key, value))


def _shown(key: str, value: Any) -> str:
    if isinstance(value, list):
        plain = [item for item in value if not isinstance(item, list | Mapping)]
        return ", ".join(_scalar(key, item) for item in plain) if len(plain) <= 64 else f"{len(plain)} entries"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_scalar(name, item)}" for name, item in value.items() if not isinstance(item, list | Mapping))
    return _scalar(key, value)


def _scalar(key: str, value: Any) -> str:
    if value is None:
        return "none"
    found = words.number(value)
    if found is None:
        return str(value)
    return words.size(found) if key.endswith("_bytes") else words.given(float(f"{found:.6g}") if isinstance(value, float) else found)
