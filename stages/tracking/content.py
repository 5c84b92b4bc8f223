"""What goes into one MLflow run, before any MLflow is involved."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

MAX_PARAM_CHARACTERS = 6000
MAX_TAG_CHARACTERS = 8000
_FORBIDDEN = re.compile(r"[^A-Za-z0-9_\-.: ]")


@dataclass(frozen=True)
class Artifact:
    """A file to attach: where it lies, and the folder in the run that it goes to."""

    path: Path
    folder: str


@dataclass(frozen=True, kw_only=True)
class RunContent:
    """One run. `key` is the content hash by which it is found again; times are milliseconds since 1970.

    `metrics` and `params` are keyed by their MLflow name; `series` maps a metric to its (step, value) points.
    """

    key: str
    name: str
    status: str
    start_ms: int
    end_ms: int
    params: Mapping[str, str]
    tags: Mapping[str, str]
    metrics: Mapping[str, float] = field(default_factory=dict)
    series: Mapping[str, list[tuple[int, float]]] = field(default_factory=dict)
    artifacts: tuple[Artifact, ...] = ()


def part(name: object) -> str:
    """A name as MLflow accepts it inside a metric's or param's name; what had to change keeps apart by a hash."""
    text = str(name)
    clean = _FORBIDDEN.sub("_", text.replace("/", "_"))
    if clean == text.replace("/", "_"):
        return clean
    return f"{clean[:80]}-{hashlib.sha256(text.encode()).hexdigest()[:4]}"


def shortened(text: str, limit: int) -> str:
    """The text, cut to `limit` characters with a closing mark where MLflow would cut it without one."""
    return text if len(text) <= limit else text[: limit - 4] + " ..."


def files_digest(artifacts: Iterable[Artifact]) -> str:
    """Hash of the names and contents of the files to attach."""
    digest = hashlib.sha256()
    for artifact in artifacts:
        digest.update(f"{artifact.folder}/{artifact.path.name}\0".encode())
        digest.update(hashlib.sha256(artifact.path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def numbers(node: Any, names: tuple[str, ...] = ()) -> dict[str, float]:
    """Every number below a document's node, lists left out: `{"phases": {"load_s": 1}}` -> `{"phases_load_s": 1.0}`."""
    if isinstance(node, bool | int | float):
        return {"_".join(names): float(node)}
    if not isinstance(node, Mapping):
        return {}
    found: dict[str, float] = {}
    for name, value in node.items():
        found.update(numbers(value, (*names, part(name))))
    return found


def flat(node: Any, prefix: str) -> dict[str, str]:
    """A configuration as params: one a leaf, named by its dotted key below `prefix`; lists stay whole."""
    if not isinstance(node, Mapping) or not node:
        return {prefix: shortened(str(node), MAX_PARAM_CHARACTERS)}
    found: dict[str, str] = {}
    for name, value in node.items():
        found.update(flat(value, f"{prefix}.{part(name)}"))
    return found


def milliseconds(timestamp: str) -> int:
    """An ISO 8601 time as milliseconds since 1970; a time without a zone counts as UTC."""
    moment = datetime.fromisoformat(timestamp)
    aware = moment if moment.tzinfo else datetime.fromisoformat(timestamp + "+00:00")
    return round(aware.timestamp() * 1000)
