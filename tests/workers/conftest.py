"""A service in this process: the mode, model and plan that a test names, on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import pytest
import torch
import yaml

from stages.core.build import build
from stages.core.records.plan import Plan
from stages.instruments.compile_phases import CompilePhases
from stages.workers.service import Service

CONF = Path(__file__).resolve().parents[2] / "conf"


def node(group: str, name: str) -> dict[str, Any]:
    """A configuration file as it stands."""
    found: dict[str, Any] = yaml.safe_load((CONF / group / f"{name}.yaml").read_text(encoding="utf-8"))
    return found


def plan_for(capture_sizes: list[int], prompt_sizes: list[int], context_tokens: int) -> Plan:
    """A plan with these shapes and no steps."""
    return Plan(
        trace="none",
        num_requests=0,
        span_s=1,
        recorded_rate_per_s=1,
        context_tokens=context_tokens,
        max_batch=capture_sizes[-1],
        length_factor=1,
        capture_sizes=capture_sizes,
        prompt_sizes=prompt_sizes,
        num_steps=0,
        num_decode_steps=0,
        runs=[],
        statistics={},
        scheduler={},
    )


class MakeService(Protocol):
    """What the fixture gives."""

    def __call__(self, model: str, mode: str = "eager") -> Service: ...


@pytest.fixture
def make_service() -> MakeService:
    """Make a service of `tiny` or `known_answer`."""
    torch.set_num_threads(1)

    def make(model: str, mode: str = "eager") -> Service:
        built = build(node("model", model), "model")
        sizes = ([1, 2], [32]) if model == "tiny" else ([1, 8], [64])
        service = Service(
            built.load("cpu", "fp32"), built, build(node("mode", mode), "mode"), plan_for(*sizes, built.context_tokens), "cpu", "fp32"
        )
        service.instruments = {"phases": CompilePhases()}
        return service

    return make
