"""From a cell's choices to its params.yaml."""

from __future__ import annotations

from typing import Any

import pytest

from stages.core.errors import UserError
from stages.core.settings import Params
from stages.core.typed_yaml import typed
from stages.sweeps.choices import Choice, cell_params, checked, swept_keys
from stages.sweeps.jobs import stage_commands

STUDY: dict[str, Any] = {
    "name": "ours",
    "model": "tiny",
    "trace": "smoke",
    "modes": ["eager", "compile", "dynamo"],
    "factorials": ["inductor_trees", "inductor_manual"],
    "measure": "smoke",
    "gate": {"baseline": "kept"},
    "overrides": ["seed=3"],
}
FACTORIALS = {
    "autotune_manual": ["eager", "max_autotune"],
    "inductor_manual": ["eager", "compile", "dynamo"],
    "inductor_trees": ["eager", "compile", "cudagraph_trees"],
}


def params_of(*choices: tuple[str, Any]) -> Params:
    made = cell_params(STUDY, "cell", [Choice(key, str(value), value) for key, value in choices], FACTORIALS)
    checked_params: Params = typed(Params, made, "params.yaml")
    return checked_params


def test_mode_makes_a_study_of_it_and_the_baseline_in_the_first_factorial_that_holds_it() -> None:
    assert params_of(("mode", "compile")).modes == ["eager", "compile"]
    assert params_of(("mode", "compile")).factorials == ["inductor_trees"]
    assert params_of(("mode", "dynamo")).factorials == ["inductor_manual"]
    assert params_of(("mode", "max_autotune")).factorials == ["autotune_manual"]


def test_baseline_alone_is_a_study_of_one_mode() -> None:
    params = params_of(("mode", "eager"))
    assert (params.modes, params.factorials) == (["eager"], ["baseline_only"])
    assert ["steady_state", "--factorial", "baseline_only"] in list(stage_commands(params))


def test_mode_outside_every_factorial_is_refused() -> None:
    with pytest.raises(UserError, match="must be a cell of a factorial"):
        params_of(("mode", "unheard_of"))


def test_without_a_mode_the_cell_has_those_of_the_study() -> None:
    params = params_of(("model", "llama_1b"))
    assert (params.model, params.modes, params.factorials) == ("llama_1b", STUDY["modes"], STUDY["factorials"])


def test_keys_of_params_are_set_and_all_others_become_overrides() -> None:
    params = params_of(
        ("precision", "bf16"), ("slo.tpot_ms", 5.0), ("arrival_rates", [1, 2]), ("measure.load.duration_s", 5), ("model.hidden_size", 32)
    )
    assert (params.precision, params.slo.tpot_ms, params.slo.ttft_ms, params.arrival_rates) == ("bf16", 5.0, 1000.0, [1, 2])
    assert params.overrides == ["seed=3", "measure.load.duration_s=5", "model.hidden_size=32"]


def test_cell_has_its_own_name_and_no_gate_and_leaves_the_study_alone() -> None:
    params = params_of(("seed", 7))
    assert (params.name, params.gate.baseline) == ("cell", None)
    assert STUDY["overrides"] == ["seed=3"]


@pytest.mark.parametrize(
    "argument", ["+seed=1", "~seed", "seed", "modes=[a]", "overrides=[a]", "name=x", "hydra.sweep.dir=/tmp/x", "gate.baseline=a"]
)
def test_argument_that_no_cell_could_honour_is_refused(argument: str) -> None:
    with pytest.raises(UserError, match=r"takes key=value|cannot be swept"):
        checked(["-m", argument])


def test_flags_and_hydra_settings_are_no_swept_keys() -> None:
    arguments = checked(["-m", "mode=a,b", "hydra.launcher.n_jobs=2", "--help"])
    assert swept_keys(arguments) == ["mode"]


def test_key_given_twice_is_refused() -> None:
    with pytest.raises(UserError, match="must give a key once"):
        swept_keys(["mode=eager", "mode=compile"])


def test_every_mode_runs_each_of_its_stages_before_the_factorials() -> None:
    commands = [" ".join(command) for command in stage_commands(params_of(("mode", "compile")))]
    assert commands == [
        "environment",
        "compose",
        "trace",
        *(f"{stage} --mode {mode}" for mode in ("eager", "compile") for stage in ("warmup", "capture", "load", "correctness")),
        "steady_state --factorial inductor_trees",
        "attribution",
        "report",
    ]
