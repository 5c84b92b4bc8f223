"""A record is current only while configuration, environment and code are those it came from."""

from __future__ import annotations

from typing import Any

import pytest

from stages.core.composed import relevant_config, typed_settings
from stages.core.currency import check_current, factorial_hashes, mode_hashes
from stages.core.errors import UserError
from stages.core.records.base import Hashes, Record
from stages.core.records.correctness import Answers, CorrectnessRecord
from stages.core.typed_yaml import load_yaml
from tests.workers.small_study import SmallStudy, write_study

STAGES = ("warmup", "capture", "steady_state", "load", "correctness")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SmallStudy:
    return write_study(tmp_path_factory.mktemp("small"), "eager", factorials=("baseline_only",))


def document(small: SmallStudy) -> dict[str, Any]:
    found: dict[str, Any] = load_yaml(small.folder / "config" / "eager.yaml")
    return found


def changed(small: SmallStudy, section: str, key: str, value: Any) -> set[str]:
    """Stages whose configuration changes with one key."""
    before, after = document(small), document(small)
    place = after
    for name in filter(None, section.split(".")):
        place = place[name]
    assert key in place
    place[key] = value
    old, new = typed_settings(before, "x"), typed_settings(after, "x")
    return {stage for stage in STAGES if relevant_config(stage, old) != relevant_config(stage, new)}


@pytest.mark.parametrize(
    ("section", "key", "value", "stages"),
    [
        ("model", "seed", 5, set(STAGES)),
        ("mode", "stability", "private", set(STAGES)),
        ("", "precision", "bf16", set(STAGES)),
        ("", "seed", 5, set(STAGES)),
        ("launch", "num_threads", 2, set(STAGES)),
        ("slo", "ttft_ms", 5.0, {"load"}),
        ("", "arrival_rates", [5], {"load"}),
        ("", "device_memory_bytes", 10**9, {"capture", "load"}),
        ("", "lifetimes_s", [5.0], set()),
        ("", "name", "other", set()),
        ("measure.warmup", "warm_starts", 7, {"warmup"}),
        ("measure.correctness", "num_examples", 7, {"correctness"}),
        ("baseline", "stability", "private", {"warmup", "load", "correctness"}),
        ("code", "load", "0", {"load"}),
        ("code", "files", "0", set(STAGES)),
    ],
)
def test_key_counts_for_the_stages_that_use_it(small: SmallStudy, section: str, key: str, value: Any, stages: set[str]) -> None:
    assert changed(small, section, key, value) == stages


def record(hashes: Hashes, status: str = "failed") -> Record[Answers]:
    return CorrectnessRecord(
        stage="correctness",
        item="eager",
        status=status,  # type: ignore[arg-type]
        started_at="",
        ended_at="",
        command="",
        hashes=hashes,
    )


def test_record_of_the_present_is_current_and_any_other_is_refused(small: SmallStudy) -> None:
    study = small.study
    present = mode_hashes("correctness", study.settings("eager"), study.plan, study.environment)
    check_current(record(present), present)
    for key in ("config", "environment", "code"):
        with pytest.raises(UserError, match=rf"correctness/eager.json: must come from the present .*; got another {key}. Run dvc repro"):
            check_current(record(present.model_copy(update={key: "other"})), present)


def test_record_that_was_never_measured_is_of_no_time(small: SmallStudy) -> None:
    nothing = Hashes(config="", environment="", code="")
    check_current(record(nothing, "skipped"), nothing.model_copy(update={"config": "x"}))


def test_another_gpu_or_plan_makes_another_record(small: SmallStudy) -> None:
    study = small.study
    settings, plan, environment = study.settings("eager"), study.plan, study.environment
    present = mode_hashes("load", settings, plan, environment)
    assert mode_hashes("load", settings, plan, {**environment, "gpu": "other"}).environment != present.environment
    assert mode_hashes("load", settings, plan.model_copy(update={"num_steps": 1}), environment).config != present.config


def test_factorial_is_current_while_its_cells_are(small: SmallStudy) -> None:
    study = small.study
    factorial = load_yaml(small.folder / "config" / "factorial" / "baseline_only.yaml")
    present = factorial_hashes(factorial, study.plan, study.environment)
    assert factorial_hashes(factorial, study.plan, study.environment) == present
    factorial["cells"]["E"]["slo"]["ttft_ms"] = 5.0
    assert factorial_hashes(factorial, study.plan, study.environment) == present
    factorial["cells"]["E"]["model"]["seed"] = 5
    assert factorial_hashes(factorial, study.plan, study.environment).config != present.config
    factorial["cells"]["E"]["code"]["steady_state"] = "0"
    assert factorial_hashes(factorial, study.plan, study.environment).code != present.code
