from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from stages.core.errors import UserError
from stages.core.paths import root
from stages.traces.composed import plan_of


def composed(folder: Path, trace_name: str, model_name: str, **changes: Any) -> Path:
    config = {
        "trace": OmegaConf.load(root() / f"conf/trace/{trace_name}.yaml"),
        "model": OmegaConf.load(root() / f"conf/model/{model_name}.yaml"),
        "measure": {"plan": {"virtual_decode_step_ms": 5.0}},
    }
    path = folder / "eager.yaml"
    path.write_text(OmegaConf.to_yaml(OmegaConf.merge(config, changes)), encoding="utf-8")
    return path


def test_default_trace_plans_600_to_1500_decode_steps_on_the_default_model(tmp_path: Path) -> None:
    plan, requests = plan_of(composed(tmp_path, "chat", "known_answer"))
    assert 600 <= plan.num_decode_steps <= 1500
    assert len(requests) == plan.num_requests == 80


def test_default_trace_is_near_the_statistics_it_imitates(tmp_path: Path) -> None:
    plan, _ = plan_of(composed(tmp_path, "chat", "known_answer"))
    names = [f"raw_{quantity}_tokens_{quantile}" for quantity in ("prompt", "output") for quantile in ("p50", "p95")]
    assert [plan.statistics[name] for name in names] == pytest.approx([1020, 4083, 129, 451], rel=0.06)
    assert plan.recorded_rate_per_s == pytest.approx(5.53, rel=0.06)
    assert plan.statistics["inter_arrival_cv"] == pytest.approx(1.09, rel=0.06)


@pytest.mark.parametrize("model", ["tiny", "known_answer"])
def test_smoke_trace_is_under_sixty_steps_and_needs_no_scaling(tmp_path: Path, model: str) -> None:
    plan, _ = plan_of(composed(tmp_path, "smoke", model))
    assert plan.num_steps < 60
    assert plan.length_factor == 1


@pytest.mark.parametrize("trace", ["chat", "azure", "smoke"])
def test_every_shipped_trace_plans_on_every_shipped_model(tmp_path: Path, trace: str) -> None:
    for model in ("tiny", "known_answer", "llama_1b"):
        plan, requests = plan_of(composed(tmp_path, trace, model))
        assert max(r.prompt_tokens for r in requests) <= plan.prompt_sizes[-1]
        assert sum(r.output_tokens for r in requests) == len(requests) + sum(
            run.size * run.count for run in plan.runs if run.phase == "decode"
        )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trace": {"seeed": 1}}, "trace.seeed: .*Keys here: name, seed"),
        ({"trace": {"rate_per_s": "fast"}}, "trace.rate_per_s: must be a number; got fast"),
        ({"trace": {"rate_per_s": -1.0}}, "trace.rate_per_s: must be from"),
        ({"measure": {"plan": {"policy": "fifo"}}}, "measure.plan.policy: must be one of prefill_first"),
        ({"measure": {"plan": {"step_ms": 5}}}, "measure.plan.step_ms: .*Keys here: virtual_decode_step_ms"),
        ({"measure": None}, "measure: must be a mapping"),
    ],
)
def test_a_wrong_key_or_value_is_refused(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        plan_of(composed(tmp_path, "chat", "tiny", **changes))


def test_a_trace_without_its_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"trace.path: must be given; got nothing"):
        plan_of(composed(tmp_path, "canonical", "tiny"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "must be an existing file"),
        ("a: [", "must be a composed"),
        ("5", "must be a composed"),
        ("- 1", "must be a composed"),
    ],
)
def test_a_file_that_is_no_composed_configuration_is_refused(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "eager.yaml"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=message):
        plan_of(path)
