"""Does the mode give the answers that eager gives? Every probe on one mode, on calls that are replays.

Three services share the weights: the mode, eager in the same precision, and a reference in higher precision (float64
for fp32, float32 for bf16). What each probe looks for stands in its file in `stages/workers/probes`.
"""

from __future__ import annotations

import time
from typing import Any

from stages.workers.probes.bench import Bench, set_up
from stages.workers.probes.probe import Document, Probe, worst
from stages.workers.probes.registry import PROBES
from stages.workers.service import Service


def check(
    service: Service, precision: str, baseline: dict[str, Any], calls_per_shape: int, num_examples: int, draw: int = 0
) -> dict[str, list[Document]]:
    """`checks` (`Check` documents) and `probes` (`ProbeRun` documents) of one mode. `draw`: of the prompts, tokens and adapters."""
    service.draw = draw
    bench = set_up(service, precision, baseline, calls_per_shape, num_examples)
    checks: list[Document] = []
    runs: list[Document] = []
    for probe in PROBES:
        found, run = _probed(bench, probe)
        checks += found
        runs.append(run)
    return {"checks": checks, "probes": runs}


def _probed(bench: Bench, probe: Probe) -> tuple[list[Document], Document]:
    began_s = time.monotonic()
    found = [document | {"probe": probe.name} for document in probe.run(bench)]
    return found, {
        "name": probe.name,
        "hazards": list(probe.hazards),
        "about": probe.about,
        "verdict": worst(found),
        "num_checks": sum(document["verdict"] != "not_run" for document in found),
        "duration_s": time.monotonic() - began_s,
        "reason": _why_none(found),
    }


def _why_none(found: list[Document]) -> str:
    """Why a probe made no check, or an empty string."""
    idle = [document["reason"] for document in found if document["verdict"] == "not_run"]
    return "; ".join(idle) if len(idle) == len(found) else ""
