"""The manifest of a carried cache artifact: what it was made with, and the content it must have."""

from __future__ import annotations

from typing import Any

from stages.core.records.base import Document


class Manifest(Document):
    """`factors`: name -> value of whatever decides the cached kernels. `sha256`: of the artifact's bytes."""

    schema_version: int = 1
    mode: str
    factors: dict[str, Any]
    sha256: str
    num_bytes: int
    cold_ready_s: float | None = None
    warm_ready_s: float | None = None


class Tried(Document):
    """One start from empty caches and a carried artifact. `changed`: factor -> [there, here]."""

    mode: str
    hit: bool
    proof: str
    changed: dict[str, list[Any]]
    ready_s: float
    cold_ready_s: float | None
    warm_ready_s: float | None
